"""Read from torch's trace what torch.export exported, and where it failed to."""

import re
import textwrap

from idbg.analysis.graph_text import user_lines
from idbg.schema import events
from idbg.schema.graphs import Frame, GraphId
from idbg.schema.programs import Failure
from idbg.traces.frame import TracedFrame
from idbg.traces.records import json_object
from idbg.traces.run import TracedRun

EXPORT = "export"
"""The frame of an exported program, to which torch gives no id."""
KINDS = frozenset({"exported_program", "missing_fake_kernel", "mismatched_fake_kernel"})
PARTIAL = "make_fx_fail_partial"
"""The artifact with what was traced before tracing failed."""
_FAKE = {"missing_fake_kernel": "has no fake kernel", "mismatched_fake_kernel": "has a fake kernel that is wrong"}
_PROGRAM = re.compile(r"^( *class \w+\(.*?)(?=^Graph signature|^Range constraints|\Z)", re.MULTILINE | re.DOTALL)
_HINT = "the trace does not have the exception: torch.export.draft_export(...) reports each such line"


def read(run: "TracedRun[TracedFrame]", kind: str, text: str) -> None:
    """Take in a record of torch.export. Raises ValueError where it has another form."""
    if kind in _FAKE:
        found = json_object(text)
        run.note(
            f"torch.export: {found.get('op', 'an op')} {_FAKE[kind]}: {found.get('reason', 'torch does not say why')}"
        )
        return
    program = _PROGRAM.search(text)
    if kind == PARTIAL:
        text = "class Partial(torch.nn.Module):\n" + textwrap.indent(text.strip("\n"), "    ")
    elif program is not None:
        text = textwrap.dedent(program[1])
    own = list(user_lines(text))
    file, line = (own[-1].file, own[-1].line) if own else ("", 0)
    run.frame_started(Frame(EXPORT, "exported program", file, line))
    name = run.named(EXPORT)
    frame = run.frame(EXPORT)
    frame.read(text, GraphId(name, "dynamo"), ())
    frame.finished = True
    if kind == PARTIAL:
        at = f" at {own[-1].code}" if own else ""
        failure = Failure(kind="torch", message=f"torch.export failed{at}", hint=_HINT, file=file, line=line)
        run.emit(events.FrameFailed(run=run.run, frame=name, failure=failure))
