"""How is it said where a program crashed, and where NaN and infinities are born?"""

from collections.abc import Iterable, Iterator

from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.schema.faults import MOST_ALIGNED, CrashSite, LaunchArgument, NanBirth

_NODES_SHOWN = 6
_SYNC = "run it with --sync (idbg diff --sync), which waits for the device after each launch"


def crash_lines(site: CrashSite) -> Iterator[str]:
    """The launch, its nodes and what it was given, a fact a line; nothing where none is known."""
    if not site.kernel:
        if site.late:
            yield f"the device told of it late, and at no launch: {_SYNC}"
        return
    where = near_place(site.file, site.line)
    place = f" ({where})" if where else ""
    yield f"{'at, or before,' if site.late else 'in'} the launch {site.handle or site.kernel}{place}"
    if site.late:
        yield f"the device told of it late: to know the launch, {_SYNC}"
    if site.nodes:
        more = f", +{len(site.nodes) - _NODES_SHOWN}" if len(site.nodes) > _NODES_SHOWN else ""
        yield f"it computes {', '.join(site.nodes[:_NODES_SHOWN])}{more}"
    yield f"it is made at {near_place(site.wrapper, site.wrapper_line)}"
    if site.arguments:
        yield "it was given:" if site.arguments_of == "crash" else "it was given, as it was launched first:"
    yield from (f"  {argument_said(argument)}" for argument in site.arguments)


def argument_said(argument: LaunchArgument) -> str:
    """One tensor in a line: dtype, shape, strides, device and how its address is aligned."""
    if not argument.alignment:
        return f"{argument.name}: {argument}, without memory"
    more = " or more" if argument.alignment == MOST_ALIGNED else ""
    return f"{argument.name}: {argument}, at a multiple of {argument.alignment} bytes{more}"


def birth_lines(births: Iterable[NanBirth] | None) -> Iterator[str]:
    """A sentence for each birth; one that says so where there is none; nothing where nobody searched."""
    if births is None:
        return
    births = tuple(births)
    yield from map(birth_said, births)
    if not births:
        yield "no NaN and no infinity appears, in eager or compiled"
    elif not any(birth.side == "compiled" for birth in births):
        yield "the kernels that were observed make none that eager has not"


def birth_said(birth: NanBirth) -> str:
    """Where a NaN or an infinity first appears, in a sentence."""
    what = "NaN" if birth.what == "nan" else "an infinity"
    where = near_place(birth.file, birth.line)
    count = f" ({birth.count:,} of {counted(birth.elements, 'element')})" if birth.elements > 1 else ""
    if birth.phase == "given":
        return f"{what} is in {birth.name} before anything runs: it is not born in the program{count}"
    if birth.side == "compiled":
        at = f", {where}" if where else ""
        first = f"first in {birth.handle or birth.kernel} (node {birth.node}{at})"
        return f"{what} appears in the compiled program alone: {first}{count}"
    place = f" at {where}" if where else ""
    during = f" in the backward of {birth.node}" if birth.phase == "backward" and birth.node else ""
    during = during or (" in the backward" if birth.phase == "backward" else "")
    return f"{what} is born in eager{during}{place}: {born_of(birth)}{count}"


def born_of(birth: NanBirth) -> str:
    """The op and its operands: "log of -0.2 in float32"."""
    operands = f" {birth.operands}" if birth.operands else ""
    made = "" if not birth.from_infinity else ", out of an infinity"
    return f"{birth.op}{operands} in {birth.dtype}{made}"
