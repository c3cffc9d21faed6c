"""Describe the attribution of a kernel's error, and what its script shows."""

from collections.abc import Iterator

from idbg.format import attributions, file_names
from idbg.format.spelling import did_you_mean
from idbg.schema.attribution import AttributionKind, KernelAttribution
from idbg.schema.diff import DiffReport
from idbg.schema.errors import BadInput
from idbg.schema.programs import Verdict

SIGNS: dict[AttributionKind, str] = {
    "compiler": "✘",
    "before": "✘",
    "graph": "✘",
    "precision": "⚠",
    "nobody": "✔",
    "unjudged": "…",
}

LOOKS: dict[AttributionKind, Verdict] = {
    "compiler": "wrong",
    "before": "wrong",
    "graph": "wrong",
    "precision": "violations",
    "nobody": "clean",
    "unjudged": "waiting",
}
"""Whose colour it has."""


def owner_lines(owner: KernelAttribution) -> Iterator[str]:
    """The verdict, then what there is to run."""
    yield f"{SIGNS[owner.kind]} {attributions.sentence(owner)}"
    if sentence := script_sentence(owner):
        yield sentence


def script_sentence(owner: KernelAttribution) -> str:
    """Where the script is and its result in a fresh process; why there is none; "" while it is not written."""
    if not owner.script:
        return f"no script: {owner.no_script}" if owner.no_script else ""
    path = file_names.from_here(owner.script)
    shows_wrong = owner.kind == "compiler"
    has_result = "WRONG" in owner.printed or "right" in owner.printed
    if owner.status is None:
        return f"script, not tried to its end: {path}"
    if owner.status not in (0, 1) or not has_result:
        return f"script, which failed by itself in a fresh process (exit {owner.status}): {path}"
    if owner.status == 1:
        found = "finds it wrong" if shows_wrong else "finds it WRONG alone, as it was not here"
    else:
        found = "finds it right alone" if not shows_wrong else "does NOT find it wrong, as it was here"
    return f"script, which was tried in a fresh process and {found} (exit {owner.status}): {path}"


def launch_named(report: DiffReport, name: str) -> int:
    """The place among the report's kernels of the launch that this names, or its handle: of several the first bad one.
    "" is the first bad one of all. Raises BadInput where there is none.
    """
    kernels = [at for at, kernel in enumerate(report.kernels) if kernel.is_launch]
    if not kernels:
        raise BadInput("there is no kernel that was observed", hint="the comparison is shown above")
    if not name:
        if report.first_bad_kernel not in kernels:
            raise BadInput("no kernel is accused, so there is none to ask about", hint="name one: --owner KERNEL")
        return report.first_bad_kernel
    found = [at for at in kernels if name in (report.kernels[at].name, report.kernels[at].handle)]
    if found:
        return next((at for at in found if report.kernels[at].bad), found[0])
    names = list(dict.fromkeys(report.kernels[at].name for at in kernels))
    having = [each for each in names if name in each]
    there = f"there are: {', '.join(names[:8])}{', ...' * (len(names) > 8)}"
    hint = did_you_mean(name, having or names, there, cutoff=0 if having else 0.6)
    raise BadInput(f"no kernel of the comparison is called {name!r}", hint=hint)
