"""What does a client hear of a question: a small answer with the command that shows it again, or why there is none?"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from idbg.mcp import command
from idbg.mcp.bounded import LIMIT, as_text, bounded
from idbg.mcp.tools import Tool
from idbg.mcp.where import Where
from idbg.schema.errors import BadInput, IdbgError

SCHEMA = "idbg.mcp/1"
MOST_TEXT = 2 * LIMIT  # letters: the same facts as lines, whose indents may take more than JSON does
_SENTENCE = 600  # letters of what is said of it


@dataclass(frozen=True)
class Answer:
    """`text` for a reader, `structured` the same as JSON; `failed`: it could not be told, and both say why."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)
    failed: bool = False


async def answer(
    tool: Tool, name: str, given: Mapping[str, Any], where: Where, hear: command.Hear | None = None
) -> Answer:
    """Ask idbg's command, and make its answer small. What goes wrong is an answer too."""
    try:
        try:
            asked = msgspec.convert(dict(given), tool.Arguments)
        except msgspec.ValidationError as error:
            raise BadInput(f"{name}: {error}", hint="the tool's schema says what it takes") from error
        argv = tuple(tool.argv(asked, where))
        done = await command.run(argv, hear)
        told = tool.tell(asked, done)
    except IdbgError as error:
        return _refused(name, error)
    facts, left = bounded(told.facts)
    again = command.spelled(argv)
    if left:
        left.append(f"all of it: {again} --json")
    said = told.said[:_SENTENCE]
    structured = {
        "schema": SCHEMA,
        "tool": name,
        "said": said,
        "facts": facts,
        "left_out": left,
        "more": told.more,
        "command": again,
        "folder": os.getcwd(),
    }
    lines = [said, "", *as_text(facts), ""]
    lines += [f"Left out: {'; '.join(left)}"] if left else []
    lines += [f"More: {told.more}"] if told.more else []
    text = "\n".join(lines)
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\nThe rest of the text is left out; the structured content has it."
    return Answer(f"{text}\nShown again by: {again}", structured)


def _refused(name: str, error: IdbgError) -> Answer:
    message, hint = error.message[:4000], error.hint[:1000]
    text = f"{message}\n{hint}" if hint else message
    return Answer(text, {"schema": SCHEMA, "tool": name, "error": {"message": message, "hint": hint}}, failed=True)
