"""Show the code that the compiler wrote for a kernel, and the nodes that it computes."""

from collections.abc import Iterator

import msgspec

from idbg.format.amounts import counted
from idbg.format.spelling import did_you_mean
from idbg.schema.code import Kernel
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Part
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.runs import Run
from idbg.schema.strict_json import like
from idbg.views import kernel_edits
from idbg.views.kernel_edits import VersionReport
from idbg.views.tree import Cell, Column, Row, Section, Table, words

SCHEMA = "idbg.kernel/1"
_KERNELS = (Column("language", rank=2), Column("nodes", "count", 3), Column("computes", rank=1, least=12))


class KernelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel; `nodes` are names in the post-grad graph of its part; `wrapper_lines` are those that launch it."""

    name: str
    language: str
    frame: str
    part: Part
    nodes: tuple[str, ...]
    wrapper_lines: list[int]
    lines: int


class KernelSource(msgspec.Struct, frozen=True, kw_only=True):
    """`kernels` are all of the run; `kernel` the requested one, `source` its code ("" of an extern op), and `versions`
    the edited sources that were tried in its place, oldest first.
    """

    schema: str = SCHEMA
    run: int
    kernels: list[KernelLine]
    kernel: KernelLine | None = None
    source: str = ""
    versions: list[VersionReport] = []


def kernel_source(run: Run, name: str = "", version: int | None = None) -> KernelSource:
    """The kernel of this name, or of this launch's handle, or the only one whose name has it; with no name, which
    kernels there are. With a `version` the source is that of this one. Raises BadInput where none is meant.
    """
    kernels = run.kernels
    lines = [_line(kernel) for kernel in kernels]
    if not name:
        return KernelSource(run=run.number, kernels=lines)
    found = named(run, name)
    versions = kernel_edits.reports(run, found.key)
    source = found.source if version is None else _version(run.edits_of(*found.key), found, version).text
    return KernelSource(run=run.number, kernels=lines, kernel=_line(found), source=source, versions=versions)


def _version(versions: list[KernelEdit], kernel: Kernel, wanted: int) -> KernelEdit:
    for each in versions:
        if each.version == wanted:
            return each
    hint = f"it has {counted(len(versions), 'version')}" if versions else "none was tried: --edit FILE tries one"
    raise BadInput(f"there is no version {wanted} of {kernel.name}", hint=hint)


def view(report: KernelSource) -> Section:
    """A row a kernel."""
    rows = [
        Row(
            (each.frame, each.part, each.name),
            words(each.name),
            (Cell(each.language), Cell(len(each.nodes)), Cell(", ".join(each.nodes))),
        )
        for each in report.kernels
    ]
    return Section(
        "Kernels", "" if rows else "this run has no kernels", len(rows), body=(Table(_KERNELS, rows, "kernel"),)
    )


def source_lines(report: KernelSource) -> Iterator[str]:
    """The code of the requested kernel, under a line that says whose it is."""
    kernel = report.kernel
    assert kernel is not None
    yield f"{kernel.name}: {kernel.language}, {kernel.frame} {kernel.part}".rstrip()
    yield f"computes {', '.join(kernel.nodes) or 'nothing that is known'}; launched in the wrapper's {_where(kernel)}"
    yield ""
    yield report.source or "an extern op: it has no source of its own"


def _where(kernel: KernelLine) -> str:
    if not kernel.wrapper_lines:
        return "code, at no known line"
    return f"line{'s' if len(kernel.wrapper_lines) > 1 else ''} {', '.join(map(str, kernel.wrapper_lines))}"


def _line(kernel: Kernel) -> KernelLine:
    return like(KernelLine, kernel, wrapper_lines=[call.line for call in kernel.calls], lines=kernel.source.count("\n"))


def named(run: Run, name: str) -> Kernel:
    """The kernel of this name, or of this launch's handle, or the only one whose name has it. Raises BadInput where
    none is meant.
    """
    kernels = run.kernels
    for kernel in kernels:
        if name == kernel.name or any(name == call.handle for call in kernel.calls):
            return kernel
    having = [kernel for kernel in kernels if name in kernel.name]
    if len(having) == 1:
        return having[0]
    names = list(dict.fromkeys(kernel.name for kernel in having or kernels))
    what = f"{len(names)} kernels have {name!r} in their name" if having else f"there is no kernel {name!r}"
    listed = "without a name, the kernels are listed"
    hint = did_you_mean(name, names, listed, most=5 if having else 3, cutoff=0 if having else 0.3)
    raise BadInput(what, hint=hint if names else "nothing of this run was compiled to kernels")
