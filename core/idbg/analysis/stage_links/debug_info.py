"""Read the debug information of LLVM IR (`!dbg`, `!DILocation`), and of PTX and assembly (`.file`, `.loc`)."""

import os
import re

from idbg.analysis.stage_links.marks import Mark, Marks, Place

_USE = re.compile(r"!dbg !(\d+)")
_DEFINITION = re.compile(r"^!(\d+) = (?:distinct )?!(\w+)\((.*)\)\s*$")
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|!(\d+)|(\d+))')
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_SCOPES = 64  # of one location


def marks_of_llvm(text: str) -> Marks:
    """The marks of the lines of an LLVM module. A function that was inlined comes before its callers."""
    lines = text.split("\n")
    known = {found[1]: _fields(found) for line in lines if (found := _DEFINITION.match(line)) is not None}
    places: dict[str, tuple[Place, ...]] = {}

    def of(number: str) -> tuple[Place, ...]:
        if number not in places:
            places[number] = tuple(_places(known, number))
        return places[number]

    used = ((number, of(found[1])) for number, line in enumerate(lines, 1) if (found := _USE.search(line)) is not None)
    return {number: Mark((), (group,)) for number, group in used if group}


def _fields(found: "re.Match[str]") -> dict[str, str]:
    fields = {name: text or reference or number for name, text, reference, number in _FIELD.findall(found[3])}
    return {"": found[2], **fields}


def _places(known: dict[str, dict[str, str]], number: str) -> list[Place]:
    """A location's place, and those at which it was inlined."""
    found: list[Place] = []
    while (location := known.get(number)) is not None and len(found) < _SCOPES:
        is_function = location[""] == "DISubprogram"
        file = _file(known, number if is_function else location.get("scope", ""))
        if file and location.get("line", "0") != "0":
            found.append((file, int(location["line"])))
        number = location.get("inlinedAt", "")
    return found


def _file(known: dict[str, dict[str, str]], scope: str) -> str:
    for _ in range(_SCOPES):
        entry = known.get(scope)
        if entry is None:
            return ""
        file = known.get(entry.get("file", ""))
        if file is not None and file.get("filename"):
            return os.path.join(file.get("directory", ""), file["filename"])
        scope = entry.get("scope", "")
    return ""


def marks_of_assembly(text: str) -> Marks:
    """The marks of the lines of PTX or assembly: those after a `.loc` are of its line, up to the next one or a label
    of a function.
    """
    files: dict[str, str] = {}
    marks: Marks = {}
    lines = text.split("\n")
    for line in lines:
        if (found := _FILE.match(line)) is not None:
            files[found[1]] = os.path.join(found[2], found[3]) if found[3] is not None else found[2]
    mark: Mark | None = None
    for number, line in enumerate(lines, 1):
        if (found := _LOC.match(line)) is not None:
            file = files.get(found[1])
            mark = Mark((), (((file, int(found[2])),),)) if file and found[2] != "0" else None
        elif not line.strip() or line.strip() == "}":
            mark = None
        if mark is not None:
            marks[number] = mark
    return marks
