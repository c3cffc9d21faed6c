"""Which code did the compiler write for a kernel?"""

from typing import Annotated

import msgspec

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where
from idbg.schema.errors import BadInput

ABOUT = (
    "Tell the generated source of a kernel of a saved session, C++ or Triton, with the nodes that it computes. Without "
    "a name: which kernels there are. Nothing is run."
)
RUNS = False
_LETTERS = 8000  # of a source, in whole lines: what an answer has room for


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """Of which session which kernel, from which line on."""

    session: tools.Session = "last"
    name: Annotated[str, msgspec.Meta(description="Its name, a part that no other has, or a launch's handle.")] = ""
    first_line: Annotated[int, msgspec.Meta(ge=1, description="Where to begin, for the next page.")] = 1


def argv(asked: Arguments, where: Where) -> list[str]:
    """That kernel of the last run."""
    return ["kernel", where.session(asked.session), *([tools.plain(asked.name)] if asked.name else [])]


def tell(asked: Arguments, done: Done) -> tools.Told:
    """As many lines as there is room for. Raises BadInput where the first is beyond the last."""
    kernel = done.told.get("kernel")
    if not isinstance(kernel, dict):
        kernels = done.told.get("kernels") or []
        rows = [{key: each.get(key) for key in ("name", "language", "frame", "part", "nodes")} for each in kernels]
        return tools.Told(counted(len(rows), "kernel"), {"kernels": rows})
    kernel = {("wrapper_lines" if key == "launches" else key): value for key, value in kernel.items()}
    lines = str(done.told.get("source", "")).splitlines()
    if lines and asked.first_line > len(lines):
        raise BadInput(
            f"{kernel['name']} has no line {asked.first_line:,}", hint=f"it has {counted(len(lines), 'line')}"
        )
    some: list[str] = []
    room = _LETTERS
    for line in lines[asked.first_line - 1 :]:
        room -= len(line) + 1
        if room < 0 and some:
            break
        some.append(line)
    after = asked.first_line + len(some)
    more = f"{len(lines):,} lines in all: first_line={after} has the next" if after <= len(lines) else ""
    what = f"lines {asked.first_line} to {after - 1} of {len(lines)}" if lines else "an extern op: it has no source"
    return tools.Told(f"{kernel['name']}, {kernel['language']}: {what}", {**kernel, "source": "\n".join(some)}, more)
