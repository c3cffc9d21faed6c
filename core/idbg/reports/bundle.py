"""Pack a repro as one file, or write it as a report in the form of PyTorch's issues."""

import zipfile
from pathlib import Path

from idbg.schema.errors import OutputError
from idbg.schema.repros import Minified

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip can tell: the same repro packs to the same bytes
_MOST_OUTPUT = 4_000  # characters of what the script printed
_SCRIPT, _TENSORS = "repro.py", "tensors.safetensors"

_README = """\
# {title}

    python repro.py

exits 1 and prints REPRODUCED where it still fails. It was written with {versions}, and needs torch{needs}.
{tensors}
"""


def packed(script: Path, versions: str) -> Path:
    """Pack a repro's folder (the script, the files beside it, a README with the versions) as one zip beside it, and
    give its path. Raises OutputError.
    """
    folder = script.parent
    target = folder.with_suffix(".zip")
    try:
        text = script.read_text(encoding="utf-8")
        has_tensors = (folder / _TENSORS).is_file()
        beside = [each for each in sorted(folder.iterdir()) if each.is_file() and each != script]
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in ((_SCRIPT, text), ("README.md", _readme(text, versions, has_tensors))):
                archive.writestr(_entry(f"{folder.name}/{name}"), content)
            for file in beside:
                with file.open("rb") as source, archive.open(_entry(f"{folder.name}/{file.name}"), "w") as held:
                    while piece := source.read(1 << 20):
                        held.write(piece)
    except OSError as error:
        target.unlink(missing_ok=True)
        hint = "free some space, or choose another place"
        raise OutputError(f"{target} cannot be written: {error.strerror or error}", hint=hint) from error
    return target


def report_of(minified: Minified, versions: str) -> str:
    """A report on what was minified, as Markdown, in the sections of PyTorch's issue form. `versions` is what
    `torch.utils.collect_env` prints. Raises ValueError where nothing failed, OSError where the script is gone.
    """
    if not minified.path:
        raise ValueError("nothing failed: there is nothing to report")
    script = Path(minified.path)
    text = script.read_text(encoding="utf-8")
    title = _title(text)
    needs = "`idbg`" if "\nimport idbg" in text else ""
    sentences = [
        f"`{minified.signature}`, shown by a script that idbg cut down from {minified.whole} {minified.unit} to "
    ]
    sentences[0] += f"{minified.size}. {minified.guarantee}".rstrip()
    sentences += [_reproduced(minified)]
    sentences += [f"It failed in {minified.failed} of {minified.tried} tries."] if minified.tried > 1 else []
    sentences += [f"It needs {needs}: see the script's heading."] if needs else []
    sentences += [minified.note] if minified.note else []
    tensors = script.with_name(_TENSORS)
    size = f"{tensors.stat().st_size:,} bytes" if tensors.is_file() else ""
    beside = [f"It reads `{_TENSORS}` ({size}), which lies beside it: attach it as a zip.", ""] if size else []
    return "\n".join(
        [
            "### 🐛 Describe the bug",
            "",
            title,
            "",
            "\n".join(sentences),
            "",
            "### Minified repro",
            "",
            *beside,
            *_fenced(text, "python"),
            "",
            "### Error logs",
            "",
            *_fenced(_output(minified) or "(nothing was printed)", ""),
            "",
            "### Versions",
            "",
            *_fenced(versions, ""),
            "",
        ]
    )


def _output(minified: Minified) -> str:
    """The end of the script's output; where its failure stands before that, as warnings may follow an error, the lines
    around it.
    """
    printed, half = minified.printed, _MOST_OUTPUT // 2
    before, sign, verdict = printed.rpartition("REPRODUCED ")
    at = before.rfind(minified.signature.message) if minified.signature.message else -1
    if at < 0 or at >= len(printed) - _MOST_OUTPUT:
        return printed[-_MOST_OUTPUT:]
    return f"{before[max(0, at - half) : at + half]}\n[...]\n{sign}{verdict}"


def _reproduced(minified: Minified) -> str:
    if minified.reproduced is None:
        return "The script was not run in a fresh process."
    exits = f"(exit status {minified.status})"
    if minified.reproduced:
        return f"The script fails so in a fresh process {exits}."
    return f"The script did not fail so in a fresh process {exits}."


def _title(text: str) -> str:
    return text.removeprefix('"""').partition("\n")[0]


def _readme(text: str, versions: str, has_tensors: bool) -> str:
    tensors = f"It reads `{_TENSORS}` beside it." if has_tensors else "It has no other files."
    needs = " and idbg" if "\nimport idbg" in text else ""
    needs += ", safetensors" if has_tensors else ""
    return _README.format(title=_title(text), versions=versions, needs=needs, tensors=tensors)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EARLIEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _fenced(text: str, language: str) -> list[str]:
    """The text as a block of code, whatever quotes it has itself."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence + language, text.rstrip("\n"), fence]
