"""Find the piece of an error's message that tells its failure from others, and is the same in every process.

Paths, numbers, and names that torch or a search chooses vary; quoted names that a user or torch's source wrote do not.
"""

import re

_LINES, _WIDTH = 12, 160  # of a message, in a script
_TELLING = 8  # characters of a piece without a quoted name that tells one failure from another
_LONGEST_NAME = 60
_QUOTED = r"'[^']*'|\"[^\"]*\"|‘[^’]*’"
_OF_DYNAMO, _PATH, _NUMBERED = r"\b[LG]\[[^\]]*\]\S*", r"\S*[/\\]\S+", r"\S*\d\S*"
_VARIES = re.compile(f"{_OF_DYNAMO}|{_PATH}|{_QUOTED}|{_NUMBERED}")
_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*")
# buf0, arg0_1, primals_2, add_3, in_ptr0, l_x_, L__self__, a hash; a dtype, as a search tries others
_RENAMED = re.compile(
    r"[a-z]{1,4}\d+(_\d+)*|\w+_\d+|\w*_ptr\d+|[lL]_\w*_|(?=[a-z]*\d)[0-9a-f]{6,}|\w*\d{3,}\w*|(b?float|u?int|complex)\d+"
)
_COMPILERS_ERROR = re.compile(r"^.*?\berror: .*$", re.MULTILINE)
_CPP = re.compile(r"^\S+:\d+:\d+: (?:fatal )?error: ")
_TRITON = re.compile(r"^at \d+:\d+:\n(?:.*\n)*?\s*\^\n", re.MULTILINE)
_TRITONS_ERROR = re.compile(r"^\w+\((?:'.*'|\".*\")\)$")
_TARGET = re.compile(r"\s*(target: \S+)$")
# what torch says beside every error of its kind, and tells none from another by
_ADVICE = re.compile(
    r"CUDA kernel errors might be async|For debugging consider passing|Compile with `TORCH_USE_|Search for `cuda"
)
_MORE = re.compile(r"For more information, run with TORCH_LOGS.*")
# CUDA names one wrong address by where it falls, which differs from process to process
MEMORY_FAULT = "an illegal memory access was encountered"
MEMORY_FAULTS = (MEMORY_FAULT, "misaligned address", "operation not supported on global/shared address space")
_PLAIN_QUOTES = {ord("‘"): "'", ord("’"): "'"}


def shortened(message: str) -> list[str]:
    """The lines of a message that say what is wrong: a compiler's errors without its command, not pages of it."""
    errors = [line.rpartition("/")[2] for line in _COMPILERS_ERROR.findall(message)] if "Command:" in message else []
    if (of_triton := _TRITON.search(message)) is not None:
        errors = [*message[of_triton.end() :].splitlines()[:1], *of_triton[0].splitlines()]
    lines = errors or [line.rstrip() for line in message.strip().splitlines() if not _ADVICE.match(line)]
    kept = [line if len(line) <= _WIDTH else line[:_WIDTH] + " ..." for line in lines[:_LINES]]
    return [*kept, "..."] if len(lines) > _LINES else kept


def fragment(message: list[str]) -> str:
    """The longest piece of a message that is the same wherever it fails, of its first line where that has one; "" if
    there is none to speak of. A C++ compiler's quotes are plain ones in it, as some locales have them.
    """
    if message and any(fault in message[0] for fault in MEMORY_FAULTS):
        return MEMORY_FAULT
    if message and " " in message[0] and re.fullmatch(_QUOTED, message[0]):  # a KeyError's: no name, but its words
        message = [message[0][1:-1], *message[1:]]
    if len(message) > 1 and ":" not in message[0] and (target := _TARGET.match(message[1])):
        return target[1]  # "missing lowering", and below it of which op
    for lines in (message[:1], message[1:3]):
        pieces = [piece.strip(" \t:;,.()[]{}<>") for line in lines for piece in _constant_pieces(line)]
        longest = max(pieces, key=len, default="")
        if len(longest) >= _TELLING or re.search(_QUOTED, longest):
            return longest
    return ""


def _constant_pieces(line: str) -> list[str]:
    line = _MORE.sub("", line)
    of_cpp = _CPP.sub("", line)
    if of_cpp != line:
        return _split(of_cpp.translate(_PLAIN_QUOTES).partition("; did you mean")[0], all_quoted=True)
    return _split(line, all_quoted=_TRITONS_ERROR.match(line) is not None)


def _split(line: str, *, all_quoted: bool) -> list[str]:
    """The line without what varies; with `all_quoted`, a compiler's quotes hold no values."""
    pieces, begun = [], 0
    for found in _VARIES.finditer(line):
        if _is_quoted_name(found[0], all_quoted=all_quoted):
            continue
        pieces.append(line[begun : found.start()])
        begun = found.end()
    return [*pieces, line[begun:]]


def _is_quoted_name(text: str, *, all_quoted: bool) -> bool:
    """Whether it is a name in quotes that stays the same; of a compiler's, also a type or a phrase of such names."""
    if not re.fullmatch(_QUOTED, text):
        return False
    name = text[1:-1]
    if _NAME.fullmatch(name) and len(name) <= _LONGEST_NAME:
        return not any(_RENAMED.fullmatch(part) for part in re.split(r"\.|::", name))
    varies = "/" in name or any(word[0].isdigit() or _RENAMED.fullmatch(word) for word in re.findall(r"\w+", name))
    return all_quoted and not varies
