"""Describe a rule of an accelerator and its keys in a few words."""

import re
from collections.abc import Iterator

import msgspec

from idbg.accelerators.values import choices
from idbg.constraints import Constraint, kinds
from idbg.format import amounts
from idbg.format.glyphs import MARKS

_SHARED = ("severity", "ops", "roles", "stages", "name", "source", "version", "fix")
_SCOPES = ("ops", "roles", "stages")
_ALWAYS = ("dims", "formats", "deny")  # shown with their default value too
_ABOUT = {
    "unit": "what the multiple counts: elements, or bytes",
    "severity": "reject: cannot run; fallback: on the host; pad, tile, slow: runs, at a cost; unknown: not checked",
    "tensors": "results: those that a node makes; operands: those that it reads; or all",
    "ops": "only calls of these operations, as globs",
    "roles": "only these tensors",
    "stages": "only graphs of these stages",
    "name": "what violations call the rule",
    "source": "the URL of the document that the rule comes from",
    "version": "the release of that document, or of the SDK",
    "fix": "a hint of yours, shown after the computed one",
    "dims": 'all, last, last 2, or a list of positions and names: [0, -1, "channels"]',
    "batch": "false: the first dimension is left out, but for weights",
}


def own_keys(rule: Constraint) -> list[str]:
    """The keys that only this kind of rule has, those that say most first."""
    shared = {field.name for field in msgspec.structs.fields(Constraint)}
    own = [field.name for field in msgspec.structs.fields(rule) if field.name not in shared]
    return sorted(own, key=("tensors", "batch").__contains__)


def keys(rule: Constraint) -> list[str]:
    """Every key that the form has a row for; `enabled` is the mark of the rule itself."""
    return [*own_keys(rule), *_SHARED]


def summary(rule: Constraint) -> str:
    """ "multiple 16 · all dims · only mm, conv*": what the rule asks, and where."""
    scope = [", ".join(getattr(rule, key)) for key in _SCOPES if getattr(rule, key)]
    words = [*_values(rule), *([f"only {'; '.join(scope)}"] if scope else [])]
    return f" {MARKS['separator']} ".join(words) or kind_words(rule.kind)


def _values(rule: Constraint) -> Iterator[str]:
    fields = {field.name: field for field in msgspec.structs.fields(rule)}
    for key in own_keys(rule):
        value, field = getattr(rule, key), fields[key]
        if value is None or key == "unit" or (not field.required and key not in _ALWAYS and value == field.default):
            continue
        if key == "deny" and not value and getattr(rule, "allow", None) is not None:
            continue  # what is allowed says it all
        if isinstance(value, bool):
            yield key if value else f"not {key}"
        elif key == "dims":
            yield _dims(value)
        elif isinstance(value, tuple):
            yield f"{key} {len(value)}: {', '.join(map(str, value))}" if value else f"{key} none"
        elif key == "multiple":
            yield f"multiple {value}{' bytes' if getattr(rule, 'unit', '') == 'bytes' else ''}"
        else:
            yield f"{key} {size(value) if key.endswith('bytes') else value}"


def _dims(value: str | tuple[int | str, ...]) -> str:
    if isinstance(value, tuple):
        return f"dims {', '.join(map(str, value))}"
    return "last dim" if value == "last" else f"{value} dims"


def size(count: float) -> str:
    """ "16 GiB", "700 B"; "no limit" for inf."""
    return "no limit" if count == float("inf") else amounts.size(int(count))


def value_words(rule: Constraint, key: str) -> str:
    """One key's value, for its row."""
    value = getattr(rule, key)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        known = choices(rule.kind, key)
        if known and key not in ("dims", *_SCOPES):
            return f"{len(value)} of {len(known)}: {', '.join(value)}"
        return ", ".join(map(str, value)) or ("all" if key in _SCOPES else "none")
    if value in (None, ""):
        return "not given"
    return f"{value} ({size(value)})" if key.endswith("bytes") else str(value)


def about(rule: Constraint, key: str, text: str, line: int) -> str:
    """What a rule, or one of its keys, is for: the comment above its line (1-based), else what its kind says."""
    return _comment(text, line) or _ABOUT.get(key) or kind_words(rule.kind)


def kind_words(kind: str) -> str:
    """The first sentence of what a kind of rule says of itself."""
    words = " ".join((kinds()[kind].__doc__ or "").split()).replace("`", "")
    return re.split(r"(?<=[a-z\")])\. (?=[A-Z])", words)[0].rstrip(".")


def provenance(rule: Constraint) -> str:
    """Which release of which document says so; "" if the rule does not say."""
    return "  ".join(part for part in (rule.version, rule.source) if part)


def _comment(text: str, line: int) -> str:
    """The comment lines right above a line, as one."""
    above = text.split("\n")[: max(line - 1, 0)]
    comment: list[str] = []
    while above and above[-1].lstrip().startswith("#"):
        comment.insert(0, above.pop().strip().lstrip("#").strip())
    return " ".join(comment) if above else ""  # what a file begins with is about the file
