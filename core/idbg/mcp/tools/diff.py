"""Compare the compiled program's numbers with eager, and find where they go wrong."""

from typing import Annotated, Any

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Run a program compiled, in eager and in float64, and compare outputs (and gradients): which are wrong beyond "
    "rounding, by how much, and with per_kernel at which stage, pass or kernel. It runs the user's code, and takes "
    "seconds to minutes."
)
RUNS = True
_OUTPUT = ("name", "passed", "judged", "shape", "dtype", "max_abs", "max_rel", "rmse", "mismatches", "because", "note")
_KERNEL = ("name", "handle", "nodes", "file", "line", "isolated", "isolated_eager", "bad")


class Arguments(tools.Compiled, frozen=True, kw_only=True):
    """The program, the target and the reference."""

    against: Annotated[str, msgspec.Meta(description="eager, fp64 or a backend's name.")] = ""
    per_kernel: Annotated[bool, msgspec.Meta(description="Also find the stage, pass or kernel.")] = False
    backward: Annotated[bool, msgspec.Meta(description="Also gradients.")] = False


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg diff`."""
    options = tools.flags(against=arguments.against, per_kernel=arguments.per_kernel, backward=arguments.backward)
    return ["diff", *arguments.command_line(allowed), *options]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """The outputs, wrong ones first, with a few figures each."""
    report = done.report
    outputs = [_some(each, _OUTPUT) for each in (*(report.get("outputs") or []), *(report.get("gradients") or []))]
    outputs.sort(key=lambda each: each["passed"] is not False)
    kernels = report.get("kernels") or []
    bad = [_some(each, _KERNEL) for each in kernels if each.get("bad")]
    facts: dict[str, object] = {
        "verdict": report.get("verdict"),
        "test": report.get("test"),
        "reference": report.get("reference"),
        "session": done.session,
        "blame": report.get("blame"),
        "failure": report.get("failure"),
        "outputs": outputs,
        "bad_kernels": bad,
        "kernels": len(kernels),
        "not_comparable": report.get("not_comparable"),
        "not_judged": report.get("not_judged"),
        "notes": report.get("notes"),
    }
    failed = sum(each["passed"] is False and each["judged"] for each in outputs)
    summary = f"{report.get('verdict')}: {failed} of {counted(len(outputs), 'output')} wrong"
    return tools.Result(f"{summary}; {report['blame']}" if report.get("blame") else summary, facts)


def _some(whole: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: whole.get(key) for key in keys}
