"""Find the smallest module of a model that fails when it is compiled alone.

From the model down: a module of which one that it calls fails alone is left for that; where none does, it is the one.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from idbg.engine.minify.user_level.module_calls import TENSORS, Call, RecordedModel
from idbg.engine.minify.user_level.script import CompileArguments
from idbg.schema.programs import Target


def whole(recorded: RecordedModel, function: str, how: CompileArguments, target: Target) -> str:
    """The model called as the program says."""
    moved = f'model = model.to("{target.device}")' if target.device and not recorded.compiled else ""
    call = ("model" if recorded.compiled else f"torch.compile(model{how.arguments})") + recorded.call
    lines = [
        f'torch.set_default_device("{target.device}")' if target.device else "",
        f"{', '.join(recorded.names)}{',' if len(recorded.names) == 1 else ''} = {function}()",
        moved,
        *_called(f"loss({call}).backward()" if "loss" in recorded.names else call, recorded.grad),
    ]
    return "\n".join(filter(None, lines)) + "\n"


def alone(
    recorded: RecordedModel, call: Call, function: str, how: CompileArguments, *, made: bool, stored: bool
) -> str:
    """One module called with what it was given first: one that is `made` like it, or the model's own; given values that
    were `stored`, or made up.
    """
    built = call.made if made else f'{function}()[0].get_submodule("{call.path}")'
    built += "" if call.training else ".eval()"
    built += f".to({call.dtype})" if made and call.dtype not in ("", "torch.float32") else ""
    given = ", ".join(call.stored if stored else call.recipes)
    loads = f'saved = load_file(HERE / "{TENSORS}")' if "saved[" in given else ""
    lines = [
        "from safetensors.torch import load_file" if loads else "",
        *(call.imports if made else ()),
        loads,
        f"module = {built}",
        *_called(f"torch.compile(module{how.arguments})({given})", recorded.grad),
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _called(call: str, grad: bool) -> list[str]:
    return [call] if grad else ["with torch.no_grad():", f"    {call}"]


def smallest(
    recorded: RecordedModel, text: Callable[[Call, bool, bool], str], fails: Callable[[str], bool], source: str
) -> tuple[Call, str] | None:
    """The innermost module that fails alone, and what calls it; None where none but the model does.

    `text` says what calls a module: whether it is made alone, and given values that were stored. `source`: FILE:LINE at
    which the failure is, whose modules are tried first.
    """
    calls, at = recorded.calls, 0
    found: Call | None = None
    while calls:
        inside = _likeliest_first(calls, at, source)
        # the model's own module with its own values, as it has failed; what is plainer afterwards
        place = next((one for one in inside if fails(text(calls[one], False, True))), None)
        if place is None:
            break
        found, at = calls[place], place
    if found is None:
        return None
    for stored in (False, True):
        for made in (True, False) if found.made else (False,):
            if fails(plainer := text(found, made, stored)):
                return found, plainer
    return found, text(found, False, True)


def _likeliest_first(calls: Sequence[Call], within: int, source: str) -> list[int]:
    """What a module calls: first those that lead to the line of the failure; one of each kind before others like it,
    and the rare ones before those.
    """
    file, _, line = source.rpartition(":")
    number = int(line) if re.fullmatch(r"\d+", line) else 0

    def has(place: int) -> bool:
        call = calls[place]
        return call.file == file and call.lines[0] <= number <= call.lines[1]

    leads = {place for place in range(len(calls)) if has(place)}
    for place in sorted(leads):
        while place >= 0 and calls[place].within not in leads:
            leads.add(place := calls[place].within)
    inside = [place for place, call in enumerate(calls) if call.within == within and call.path and not call.why]
    kinds = Counter((calls[place].name, calls[place].made) for place in inside)
    first = {(calls[place].name, calls[place].made): place for place in reversed(inside)}.values()

    def rank(place: int) -> tuple[bool, bool, int, int]:
        return place not in leads, place not in first, kinds[calls[place].name, calls[place].made], place

    return sorted(inside, key=rank)
