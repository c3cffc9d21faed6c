"""Answer a client: a small result with the command that prints it again, or an error."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from idbg.mcp import command
from idbg.mcp.bounded import LIMIT, as_text, bounded
from idbg.mcp.tools import Tool
from idbg.mcp.where import AllowedSessions
from idbg.schema.errors import BadInput, IdbgError

SCHEMA = "idbg.mcp/1"
MAX_TEXT = 2 * LIMIT  # characters: the facts as lines may be longer than as JSON
_SENTENCE = 600  # characters of the summary


@dataclass(frozen=True)
class Answer:
    """`text` for a reader, `structured`: the same as JSON. `failed`: both are an error."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)
    failed: bool = False


async def answer(
    tool: Tool, name: str, raw: Mapping[str, Any], allowed: AllowedSessions, on_line: command.OnLine | None = None
) -> Answer:
    """Run the command of the tool, and shorten its result. An error is an answer too."""
    try:
        try:
            arguments = msgspec.convert(dict(raw), tool.Arguments)
        except msgspec.ValidationError as error:
            raise BadInput(f"{name}: {error}", hint="see the tool's schema") from error
        argv = tuple(tool.argv(arguments, allowed))
        result = tool.summarize(arguments, await command.run(argv, on_line))
    except IdbgError as error:
        return _refused(name, error)
    facts, left = bounded(result.facts)
    again = command.spelled(argv)
    if left:
        left.append(f"all of it: {again} --json")
    summary = result.summary[:_SENTENCE]
    structured = {
        "schema": SCHEMA,
        "tool": name,
        "said": summary,
        "facts": facts,
        "left_out": left,
        "more": result.more,
        "command": again,
        "folder": os.getcwd(),
    }
    lines = [summary, "", *as_text(facts), ""]
    lines += [f"Left out: {'; '.join(left)}"] if left else []
    lines += [f"More: {result.more}"] if result.more else []
    text = "\n".join(lines)
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\nThe rest of the text is left out; the structured content has it."
    return Answer(f"{text}\nShown again by: {again}", structured)


def _refused(name: str, error: IdbgError) -> Answer:
    message, hint = error.message[:4000], error.hint[:1000]
    text = f"{message}\n{hint}" if hint else message
    return Answer(text, {"schema": SCHEMA, "tool": name, "error": {"message": message, "hint": hint}}, failed=True)
