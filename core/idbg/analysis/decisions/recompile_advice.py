"""Suggest what to do about a guard that failed and made torch compile a function again."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from os.path import basename

from idbg.analysis.decisions.break_report import whose
from idbg.analysis.decisions.recompiles import Timeline, changing, shown, tensors_of, varying
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.schema.decisions.dynamo import FailedGuard, FrameGuards
from idbg.schema.runs import Run

_STACKED = re.compile(r"___stack\d+")
_NUMBER = re.compile(r"^-?\d+$")
_REAL = re.compile(r"^-?(\d+\.\d*|\d*\.\d+|\d+)(e[+-]?\d+)?$")
_AS_NUMBER = re.compile(r"\b(range|int)\(")
_CACHE = re.compile(r"cache|past_key|\bkv\b", re.IGNORECASE)
_MOST_NAMED = 4  # tensors that one suggestion marks
_SMALL = frozenset({"0", "1"})
_SET = "torch._dynamo.config."
_MODULES_INT = "allow_unspec_int_on_nn_module"
_STATIC = "force_parameter_static_shapes", "force_nn_module_property_static_shapes"  # one alone changes nothing
_ASSIGNED = re.compile(r"\w+|self\.\w+")  # what a line can surely give another value to
_BACKEND = re.compile(r"(?<=DispatchKeySet\()\w+")
_OF_FUNCTION = re.compile(r"\.(__code__|__(?:kw)?defaults__|__closure__)\b.*")
_KEY_AT = re.compile(r"list\(dict\.keys\((.+)\)\)\[\d+\]")  # a dict's keys are compared one by one, in order
_BUILT = frozenset({"list", "tuple", "dict", "set", "frozenset", "int", "float", "bool", "str"})
_DTYPES = {
    "Float": "torch.float32",
    "Double": "torch.float64",
    "Half": "torch.float16",
    "BFloat16": "torch.bfloat16",
    "Byte": "torch.uint8",
    "Char": "torch.int8",
    "Short": "torch.int16",
    "Int": "torch.int32",
    "Long": "torch.int64",
    "Bool": "torch.bool",
    "ComplexFloat": "torch.complex64",
    "ComplexDouble": "torch.complex128",
}


@dataclass(frozen=True)
class _Seen:
    """What a timeline has of one guard's source: the values that versions were compiled for, and that calls had.

    `fixed`: the code needs it as a Python number: it was compiled for one value again where torch makes dynamic what
    changes. `tested`: the code compares it with something, and each outcome is a version. `vary`: the tensors whose
    sizes changed, with the dimensions. `as_settings`: the program has no line where a tensor could be marked.
    """

    name: str
    expected: frozenset[str]
    actual: frozenset[str]
    fixed: bool
    dynamic: bool | None
    as_settings: bool
    vary: dict[str, tuple[int, ...]]
    compile: str

    @property
    def values(self) -> frozenset[str]:
        return self.expected | self.actual

    @property
    def tested(self) -> bool:
        return any("<" in each or ">" in each or "Mod" in each or "%" in each or "!=" in each for each in self.expected)


def advice_on(failed: FailedGuard, timeline: Timeline, run: Run) -> list[Suggestion]:
    """What may keep this guard from failing in the calls that were made, the best first; none where nothing is known
    to, or where it is done already.
    """
    seen = _seen(failed, timeline, run)
    match failed.kind:
        case "size":
            found = _of_size(failed, seen)
        case "value":
            found = _of_value(failed, seen)
        case "tensor":
            found = _of_tensor(failed, seen.name, changing(timeline, run, failed.what))
        case _:
            found = _of_others(failed, seen.name)
    return [each for each in found if not _is_done(each, run)]


def suggestions_for(run: Run, timeline: Timeline) -> list[Suggestion]:
    """What to do about a function's recompiles: the best for each guard that failed, the most frequent guard first;
    then the alternatives.
    """
    guards = timeline.failed
    times = Counter((guard.source, guard.kind, guard.what) for guard in guards)
    first = {(guard.source, guard.kind, guard.what): guard for guard in reversed(guards)}
    lists = [advice_on(first[key], timeline, run) for key, _ in times.most_common()]
    found: dict[str, Suggestion] = {}
    for rank in zip_longest(*lists):
        for suggestion in rank:
            if suggestion is not None:
                found.setdefault(suggestion.words, suggestion)
    return list(found.values())


def _is_done(suggestion: Suggestion, run: Run) -> bool:
    """Whether the program or its target has these settings."""
    if (
        suggestion.can_be_tried
        and suggestion.dynamic in (None, run.target.dynamic)
        and {*suggestion.dynamic_sources} <= {*run.target.dynamic_sources}
        and suggestion.settings.items() <= run.target.settings.items()
    ):
        return True
    if not run.torch_settings:
        return False
    lines = {line.replace('"', "'") for line in run.torch_settings}
    return bool(suggestion.code) and lines.issuperset(suggestion.code.replace('"', "'").split("; "))


def _seen(failed: FailedGuard, timeline: Timeline, run: Run) -> _Seen:
    rows = timeline.compiles
    alike = [failed, *(each for row in rows for each in row.failed if _key(each) == _key(failed))]
    expected, actual = frozenset(each.expected for each in alike), frozenset(each.actual for each in alike)
    numbers = {each for each in expected if _NUMBER.match(each)}
    again = [row.frame for row in rows if row.failed and _key(row.failed[0]) == _key(failed)]
    fixed = len(numbers - _SMALL if failed.kind == "size" else numbers) > 1
    if failed.kind == "value" or (failed.kind == "size" and not (actual | expected) & _SMALL):
        fixed = fixed or any(_is_for_one(run.decided.last(FrameGuards).get(frame), failed) for frame in again)
    if failed.source.startswith("G["):  # torch makes no global dynamic by itself: then the user's line has to tell
        fixed = _AS_NUMBER.search(failed.text) is not None
    automatic = all(row.result is None or row.result.automatic is not False for row in rows)
    name = _user_name(failed.source)
    return _Seen(
        name,
        expected,
        actual,
        fixed and automatic,
        run.target.dynamic,
        timeline.resumed or whose(timeline.file) != "user",
        varying(timeline, run),
        _compile_code(timeline),
    )


def _compile_code(timeline: Timeline) -> str:
    """The torch.compile of a timeline, with dynamic=True."""
    call = timeline.call
    name = timeline.function if call is None else "" if call.is_module else call.name
    place = f"  # {basename(call.file)}:{call.line}" if call and call.file else ""
    return f"torch.compile({name if name.isidentifier() else '...'}, dynamic=True){place}"


def _key(failed: FailedGuard) -> tuple[str, str, str]:
    return failed.source, failed.kind, failed.what


def _is_for_one(guards: FrameGuards | None, failed: FailedGuard) -> bool:
    """Whether a version that was compiled as this varied is for one number all the same."""
    if failed.kind == "value":
        codes = [code for guard in guards.guards for code in guard.code] if guards is not None else []
        one = re.compile(rf"{re.escape(failed.source)} == -?\d+")
        return any(one.fullmatch(code) is not None for code in codes)
    dim, tensor = failed.what.partition(" ")[2], tensors_of(guards).get(failed.source)
    return bool(dim) and tensor is not None and tensor["size"].split(", ")[int(dim)] != "None"


def _of_size(failed: FailedGuard, seen: _Seen) -> Iterator[Suggestion]:
    name, (what, _, dim) = seen.name, failed.what.partition(" ")
    where = f" at line {failed.line}" if failed.line else ""
    if what == "rank":
        yield Suggestion(f"give {name} the same number of dimensions in each call")
        return
    if what == "stride":
        yield Suggestion(f"lay {name} out alike in each call", f"{name} = {name}.contiguous()")
        return
    if _STATIC[0] in failed.text:
        yield Suggestion(
            "let the sizes of parameters vary: the second version then fits all",
            "; ".join(f"{_SET}{name} = False" for name in _STATIC),
            settings={f"dynamo.{name}": False for name in _STATIC},
        )
        return
    if seen.fixed:
        yield Suggestion(
            f"the code needs size {dim} of {name} as a number (a loop, int()), and is compiled for each: "
            "let an op do that, or pad to one size"
        )
        return
    small = sorted(seen.values & _SMALL)
    if small:
        each = " and ".join(small)
        yield Suggestion(f"size {each} is compiled on its own: pad size {dim} of {name} to 2 or more, if it can be")
    if any(_CACHE.search(source) for source in (failed.source, *seen.vary)):
        yield Suggestion(
            "allocate the cache once, at its largest size, so that no size changes (in transformers: "
            'generate(cache_implementation="static"))'
        )
    if seen.tested:
        yield Suggestion(f"the code{where} does otherwise for such sizes: pad {name} to one side, or take the test out")
    if (
        seen.dynamic is True
        or "(" in failed.source
        or (small and len({each for each in seen.values if _NUMBER.match(each)} - _SMALL) < 2)
    ):
        return
    keeps = " and ".join([*small, *(["each side of the test"] if seen.tested else [])])
    alone: dict[str, tuple[int, ...]] = {failed.source: (int(dim or 0),)}
    sources = seen.vary if failed.source in seen.vary else alone
    if not keeps and len(sources) <= _MOST_NAMED and all(map(_is_users, sources)):
        yield _marking(sources, seen)
    rest = f"; {keeps} keeps a version of its own" if keeps else ""
    yield Suggestion(f"let all sizes vary{rest}", seen.compile, dynamic=True)


def _marking(sources: dict[str, tuple[int, ...]], seen: _Seen) -> Suggestion:
    """Of all tensors whose sizes change: if one is left out, the function is compiled again for that one."""
    names = " and ".join(f"size {' and '.join(map(str, dims))} of {shown(name)}" for name, dims in sources.items())
    varies = "varies" if len(sources) == 1 else "vary"
    marks = (
        f"torch._dynamo.mark_dynamic({shown(name)}, {dims[0] if len(dims) == 1 else list(dims)})"
        for name, dims in sources.items()
    )
    return Suggestion(
        f"say that {names} {varies} from the first call on",
        _dynamic(*sources) if seen.as_settings else "; ".join(marks),
        dynamic=None if seen.dynamic is None else True,
        dynamic_sources=tuple(sources),
    )


def _of_value(failed: FailedGuard, seen: _Seen) -> Iterator[Suggestion]:
    name = seen.name
    if _OF_FUNCTION.search(name):
        yield _of_functions(name)
    elif of := _KEY_AT.fullmatch(name):
        yield Suggestion(
            f"give {of[1]} the same keys in the same order in each call: each order is compiled on its own"
        )
    elif seen.tested:
        where = f" at line {failed.line}" if failed.line else ""
        yield Suggestion(
            f"the code{where} does otherwise for such values of {name}: choose outside of what is compiled"
        )
    elif not all(_REAL.match(each) for each in seen.values):
        yield Suggestion(f"each value of {name} is compiled on its own: choose outside of what is compiled")
    elif _MODULES_INT in failed.text:
        yield Suggestion(
            "let integers of modules vary: the second version then fits all",
            f"{_SET}{_MODULES_INT} = True",
            settings={f"dynamo.{_MODULES_INT}": True},
        )
    elif not _is_users(failed.source):
        if all(map(_NUMBER.match, seen.values)):
            yield Suggestion(f"let {name} vary", _dynamic(failed.source), dynamic_sources=(failed.source,))
        elif seen.dynamic is not True:  # torch reads no float's source there
            yield Suggestion(f"let {name} vary", seen.compile, dynamic=True)
    elif len({_NUMBER.match(each) is None for each in seen.values}) > 1:
        yield Suggestion(
            f"pass {name} always as one type, and as a tensor: its value is then no part of what is compiled",
            f"{name} = torch.tensor(float({name}))",
        )
    elif seen.fixed:
        yield Suggestion(
            f"the code needs {name} as a number (a loop, an index), and is compiled for each: "
            "choose outside of what is compiled"
        )
    else:
        yield from _of_number(failed, seen)


def _of_number(failed: FailedGuard, seen: _Seen) -> Iterator[Suggestion]:
    name = seen.name
    varies = f"say that {name} varies from the first call on"
    if seen.dynamic is not True and _NUMBER.match(failed.expected):
        sources = {"dynamic": None if seen.dynamic is None else True, "dynamic_sources": (failed.source,)}
        yield Suggestion(varies, _dynamic(failed.source), **sources)  # type: ignore[arg-type]
        return  # a tensor cannot be a size or an index without a break
    if seen.dynamic is not True:
        yield Suggestion(varies, seen.compile, dynamic=True)
    yield Suggestion(
        f"make {name} a tensor: its value is then no part of what is compiled",
        f"{name} = torch.tensor({name})" if _ASSIGNED.fullmatch(name) else "",
    )


def _of_tensor(failed: FailedGuard, name: str, changing: Sequence[str]) -> Iterator[Suggestion]:
    if not _is_users(failed.source):
        return
    what = failed.what.partition(" ")[0]
    if len(changing) > 1 or ("." in name and what in ("dtype", "requires_grad")):
        names = ", ".join([shown(each) for each in changing[:_MOST_NAMED]] or [name])
        names += f" and {len(changing) - _MOST_NAMED:,} more" if len(changing) > _MOST_NAMED else ""
        yield Suggestion(f"let {names} have the same {what} in each call: they changed together, and all must stay")
    elif what == "dtype":
        dtype = _DTYPES.get(failed.expected)
        yield Suggestion(f"cast {name} once, before the call", f"{name} = {name}.to({dtype})" if dtype else "")
    elif what == "requires_grad":
        # detached, it would be alike too, and nothing above it would be trained
        yield Suggestion(f"call it always with {name} that needs gradients, or never", f"{name}.requires_grad_()")
    elif what == "stride":
        yield Suggestion(f"lay {name} out alike in each call", f"{name} = {name}.contiguous()")
    elif what == "device" or _BACKEND.findall(failed.expected) != _BACKEND.findall(failed.actual):
        yield Suggestion(f"have {name} on the same device in each call")
    else:
        yield Suggestion(f"make {name} always in the same mode (inference_mode, vmap), and always of the same kind")


def _of_others(failed: FailedGuard, name: str) -> Iterator[Suggestion]:
    match failed.kind:
        case "length":
            yield Suggestion(
                f"give {name} the same length in each call: pad it, or change it outside of what is compiled"
            )
        case "type":
            kind = failed.expected
            yield Suggestion(f"pass {name} always as a {kind}", f"{name} = {kind}({name})" if kind in _BUILT else "")
        case "identity" if _OF_FUNCTION.search(name) or "method" in failed.expected or "function" in failed.expected:
            yield _of_functions(name)
        case "identity":
            yield Suggestion(f"pass always the same object as {name}: each is compiled on its own")
        case "key":
            yield Suggestion(f"give {name} the same keys in each call, or choose outside of what is compiled")
        case "state" if "grad_mode" in failed.source:
            yield Suggestion("call it always with gradients or always without: each is a version of its own")
        case "state":
            yield Suggestion(
                f"leave torch's {failed.source} as it is between calls: each state is a version of its own"
            )
        case "alias":
            yield Suggestion("pass tensors that share no memory, or always the same")
        case _:
            return


def _of_functions(name: str) -> Suggestion:
    """Of a function that is another one in each call, or a value that it holds: torch makes neither dynamic."""
    return Suggestion(
        f"each function that is passed as {_OF_FUNCTION.sub('', name)} is compiled on its own: call it outside of what "
        "is compiled, or compile one function for each"
    )


def _dynamic(*sources: str) -> str:
    return f'torch.compiler.config.dynamic_sources = "{",".join(sources)}"'


def _is_users(source: str) -> bool:
    """Whether it is something that the program gives, and not what a break left on Python's stack."""
    return bool(source) and not _STACKED.search(source)


def _user_name(source: str) -> str:
    return shown(source) if _is_users(source) else "what crosses the break"
