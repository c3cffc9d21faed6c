"""Are the compiled program's numbers right, and if not, where do they go wrong?"""

from typing import Annotated, Any

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where

ABOUT = (
    "Run a program compiled, in eager and in float64, and compare outputs (and gradients): which are wrong beyond "
    "rounding, by how much, and with per_kernel since which stage, pass or kernel. It runs the user's code, and takes "
    "seconds to minutes."
)
RUNS = True
_OUTPUT = ("name", "passed", "judged", "shape", "dtype", "max_abs", "max_rel", "rmse", "mismatches", "because", "note")
_KERNEL = ("name", "handle", "nodes", "file", "line", "isolated", "isolated_eager", "bad")


class Arguments(tools.Compiled, frozen=True, kw_only=True):
    """What is compared with what."""

    against: Annotated[str, msgspec.Meta(description="eager, fp64 or a backend's name.")] = ""
    per_kernel: Annotated[bool, msgspec.Meta(description="Also since which stage, pass or kernel.")] = False
    backward: Annotated[bool, msgspec.Meta(description="Also gradients.")] = False


def argv(asked: Arguments, where: Where) -> list[str]:
    """The comparison."""
    line = ["diff", *asked.flags(where)]
    line += [f"--against={asked.against}"] if asked.against else []
    line += ["--per-kernel"] if asked.per_kernel else []
    return line + (["--backward"] if asked.backward else [])


def tell(asked: Arguments, done: Done) -> tools.Told:
    """What fails first, in few figures each."""
    told = done.told
    outputs = [_some(each, _OUTPUT) for each in (*(told.get("outputs") or []), *(told.get("gradients") or []))]
    outputs.sort(key=lambda each: each["passed"] is not False)
    kernels = told.get("kernels") or []
    bad = [_some(each, _KERNEL) for each in kernels if each.get("bad")]
    facts: dict[str, object] = {
        "verdict": told.get("verdict"),
        "test": told.get("test"),
        "reference": told.get("reference"),
        "session": done.session,
        "blame": told.get("blame"),
        "failure": told.get("failure"),
        "outputs": outputs,
        "bad_kernels": bad,
        "kernels": len(kernels),
        "not_comparable": told.get("not_comparable"),
        "notes": told.get("notes"),
    }
    failed = sum(each["passed"] is False and each["judged"] for each in outputs)
    said = f"{told.get('verdict')}: {failed} of {counted(len(outputs), 'output')} wrong"
    return tools.Told(f"{said}; {told['blame']}" if told.get("blame") else said, facts)


def _some(whole: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: whole.get(key) for key in keys}
