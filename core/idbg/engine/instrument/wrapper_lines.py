"""Find the launches in Inductor's wrapper, and the line after which each buffer has its value.

The wrapper is one Python function, `call`. A buffer is allocated (`buf0 = empty_strided_cpu(...)`), reuses the memory
of another (`buf5 = buf4; del buf4 # reuse`), or is a part of another (`# alias`), and the first launch that gets it
writes it. Extern calls return theirs (`buf2 = extern_kernels.convolution(...)`, `buf7 = buf6[0]`).
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, cast

from idbg.schema.code import KernelCall, OutputCode

ENTER, AFTER = "__idbg_enter__", "__idbg_after__"  # what the instrumented code calls
BEFORE, LEAVE = "__idbg_before__", "__idbg_leave__"  # and on request, before launches and the return
RETURNED = "__idbg_returned__"  # with all that `call` is about to return
LEAVING = -1  # the number that a hook "before" gets as `call` returns

Place = Literal["around", "before", "after"]
"""Where `routed` code calls a hook."""
NO_CALL = "the output code has no Python function `call`"
_VIEW = re.compile(r"reinterpret_tensor|alloc_from_pool|as_strided")
_LAUNCH = re.compile(r"(extern_kernels|torch\.ops|aten|inductor_ops|_quantized|cpp_\w+|triton_\w+)\b.*|.*\.run")


@dataclass(frozen=True)
class Launch:
    """One launch: its kernel, Inductor's debug handle ("" if it has none), its 1-based line, the post-grad nodes that
    it computes, and the buffers that it reads.

    `text` is the call as Python, `names` are the wrapper's local names in it, the arguments of BEFORE. `present`: for
    each buffer that it reads, the name of its memory there. `fresh`: names without a value yet, `assigned`: those of
    its result. `arguments`: as Python, keyword arguments last; only `routed` gives them.
    """

    name: str
    handle: str
    line: int
    nodes: tuple[str, ...]
    takes: tuple[str, ...]
    text: str = ""
    names: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """A place just after a launch (or after a member of its result is named) where these names hold tensors."""

    launch: int
    names: tuple[str, ...]


@dataclass
class Wrapper:
    """`writes`: buffer -> the points at which it is written, in order: it has its value after the last. `bases`: name
    -> the name whose memory it uses. `returned`: the buffers in its return. `members`: name -> its part of a launch's
    result, as Python.
    """

    function: ast.FunctionDef
    launches: list[Launch] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    writes: dict[str, list[int]] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    returned: tuple[str, ...] = ()
    members: dict[str, str] = field(default_factory=dict)

    def instrumented(self) -> ast.Module:
        """A module that holds `call`, its lines numbered as they were, with a call of AFTER at each point."""
        return ast.fix_missing_locations(ast.Module([self.function], []))


def read_wrapper(
    code: OutputCode, tensors: Collection[str], changed: Mapping[str, Collection[str]], *, around: bool = False
) -> Wrapper:
    """The wrapper's launches and points. `tensors` are the names of the graph's inputs and buffers; `changed` names for
    each that is written in place the nodes that do it. The instrumented code calls RETURNED before a return. With
    `around` it calls BEFORE each launch instead, with its number and what its names hold, and LEAVE before a return,
    with what the returned buffers hold.

    Raises ValueError where the code has no function `call`, as C++ wrappers do not.
    """
    functions = (node for node in ast.walk(ast.parse(code.text)) if isinstance(node, ast.FunctionDef))
    function = next((each for each in functions if each.name == "call"), None)
    if function is None:
        raise ValueError(NO_CALL)
    reader = _Reader(code, Wrapper(function), frozenset(tensors), changed, around)
    argument = ast.Name(function.args.args[-1].arg, ast.Load())
    function.body = [_hook(ENTER, [argument], function.body[0]), *reader.body(function.body)]
    return reader.wrapper


def routed(code: OutputCode, hook: str, place: Place = "around", first: int = 0) -> tuple[ast.Module, list[Launch]]:
    """The wrapper's functions, those of branches and loops too, with a call of `hook` at each launch; and the launches
    in the order of their numbers, which begin at `first`. What they read is not found out.

    "around": `hook(number, function, *arguments)` takes the place of the launch; "before": of its function, which it
    returns, with all arguments by position, and `hook(LEAVING, result)` returns what `call` returns; "after":
    `hook(number, result)` returns the result.

    Raises ValueError where there is no function `call`.
    """
    listed = _listed(code)
    functions = [node for node in ast.walk(ast.parse(code.text)) if isinstance(node, ast.FunctionDef)]
    if not any(function.name == "call" for function in functions):
        raise ValueError(NO_CALL)
    launches: list[Launch] = []
    for statement in sorted(dict.fromkeys(_calls(functions)), key=lambda statement: statement.lineno):
        if (launch := _launch(statement, listed)) is None:
            continue
        value, called, number = statement.value, ast.Name(hook, ast.Load()), ast.Constant(first + len(launches))
        given = [*value.args, *(keyword.value for keyword in value.keywords)]
        launches.append(replace(launch, arguments=tuple(map(ast.unparse, given))))
        match place:
            case "around":
                value.func, value.args = called, [number, value.func, *value.args]
            case "before":
                value.func = ast.copy_location(ast.Call(called, [number, value.func, *given], []), value)
            case "after":
                statement.value = ast.copy_location(ast.Call(called, [number, value], []), value)
    if place == "before":
        _hook_returns(functions, hook)
    return ast.fix_missing_locations(ast.Module(list[ast.stmt](functions), [])), launches


def _hook_returns(functions: Iterable[ast.FunctionDef], hook: str) -> None:
    """Have `call` return what the hook returns of its result."""
    for function in functions:
        for node in ast.walk(function) if function.name == "call" else ():
            if isinstance(node, ast.Return) and node.value is not None:
                leaving = [ast.Constant(LEAVING), node.value]
                node.value = ast.copy_location(ast.Call(ast.Name(hook, ast.Load()), leaving, []), node.value)


class _CallStatement(Protocol):
    """A statement that is a call, or assigns its result."""

    lineno: int
    end_lineno: int | None
    value: ast.Call


def _calls(functions: Iterable[ast.FunctionDef]) -> Iterator[_CallStatement]:
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.Expr)) and isinstance(node.value, ast.Call):
                yield cast("_CallStatement", node)


def _launch(statement: _CallStatement, listed: Mapping[int, tuple[str, KernelCall]]) -> Launch | None:
    called = _called(statement.value)
    for line in _lines(statement):
        if line in listed:
            name, call = listed[line]
            return Launch(name, call.handle, line, call.nodes, ())
    return Launch(called.removesuffix(".run"), "", statement.lineno, (), ()) if _LAUNCH.fullmatch(called) else None


class _Reader:
    """Reads the statements in order. `fresh`: names with memory and without a value; `base`: the name whose memory a
    name uses; `wholes`: names that are written through their parts; `tuples`: the launch that returned a name's value.
    """

    def __init__(
        self,
        code: OutputCode,
        wrapper: Wrapper,
        tensors: frozenset[str],
        changed: Mapping[str, Collection[str]],
        around: bool = False,
    ) -> None:
        self.wrapper = wrapper
        self.around = around
        self.locals = _own_names(wrapper.function)
        self.tensors = tensors
        self.changed = changed
        self.calls = _listed(code)
        self.fresh: set[str] = set()
        self.allocated: set[str] = set()
        self.base = wrapper.bases
        self.wholes: set[str] = set()
        self.tuples: dict[str, int] = {}

    def body(self, statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in statements:
            for block in ("body", "orelse", "finalbody"):
                if inner := getattr(statement, block, None):
                    setattr(statement, block, list(self.body(inner)))
            if hasattr(statement, "body"):
                yield statement
                continue
            launches = len(self.wrapper.launches)
            after = list(self.hooks(statement))
            if self.around:
                yield from self.before(statement, launches)
            elif isinstance(statement, ast.Return) and statement.value is not None:
                yield _hook(RETURNED, [statement.value], statement)
            yield statement
            yield from after

    def before(self, statement: ast.stmt, launches: int) -> Iterator[ast.stmt]:
        """`launches`: how many there were before this statement."""
        for number in range(launches, len(self.wrapper.launches)):
            yield _hook(BEFORE, [ast.Constant(number), *_loaded(self.wrapper.launches[number].names)], statement)
        if isinstance(statement, ast.Return) and statement.value is not None:
            self.wrapper.returned = tuple(self.mentioned(statement.value))
            yield _hook(LEAVE, _loaded(self.wrapper.returned), statement)

    def hooks(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        before = len(self.wrapper.points)
        self.read(statement)
        for number in range(before, len(self.wrapper.points)):
            yield _hook(AFTER, [ast.Constant(number), *_loaded(self.wrapper.points[number].names)], statement)

    def read(self, statement: ast.stmt) -> None:
        assigned = _assigned(statement)
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Delete):
            self.fresh.difference_update(ast.unparse(target) for target in statement.targets)
        if not isinstance(statement, (ast.Assign, ast.Expr)) or value is None:
            return
        if isinstance(value, ast.Call) and self.is_launch(statement, value):
            self.launch(statement, value, assigned)
        elif isinstance(value, ast.Subscript) and (source := _root(value)) in self.tuples:
            self.member(assigned, self.tuples[source], ast.unparse(value))
        else:
            source = next(iter(self.mentioned(value)), "")
            if source and (isinstance(value, ast.Name) or _VIEW.fullmatch(_called(value).rpartition(".")[2])):
                self.base.update(dict.fromkeys(assigned, source))
            elif not isinstance(value, ast.Call):
                return  # `primals_1, primals_2 = args`, `s27 = primals_1`
            self.fresh.update(self.tensors.intersection(assigned))
            self.allocated.update(assigned)

    def is_launch(self, statement: ast.stmt, value: ast.Call) -> bool:
        if any(line in self.calls for line in _lines(statement)):
            return True
        assigned = self.tensors.intersection(_assigned(statement))
        return bool((assigned or self.mentioned(value)) and _LAUNCH.fullmatch(_called(value)))

    def launch(self, statement: ast.stmt, value: ast.Call, assigned: list[str]) -> None:
        listed = next((self.calls[line] for line in _lines(statement) if line in self.calls), None)
        name, handle, nodes = _called(value).removesuffix(".run"), "", frozenset[str]()
        if listed:
            name, handle, nodes = listed[0], listed[1].handle, frozenset(listed[1].nodes)
        mentioned = self.mentioned(value)
        new = self.fresh - self.wholes
        written = [*assigned, *(other for other in mentioned if other in new)]
        takes: dict[str, str] = {}
        read = {other for each in _without_out(value) for other in self.mentioned(each)}
        for other in (other for other in mentioned if other in read or other not in new):
            takes.setdefault(self.base.get(other, "") if other in new else other, other)
        taken = [other for other in takes if self.has_value(other)]
        wholes = [self.base[other] for other in written if self.base.get(other) in self.fresh]
        self.wholes.update(wholes)
        changed = [
            other for other in mentioned if other in self.changed and (not listed or nodes & set(self.changed[other]))
        ]
        number = len(self.wrapper.launches)
        ordered = tuple(listed[1].nodes) if listed else ()
        names = (node.id for node in ast.walk(value) if isinstance(node, ast.Name))
        self.wrapper.launches.append(
            Launch(
                name,
                handle,
                value.lineno,
                ordered,
                tuple(taken),
                ast.unparse(value),
                tuple(dict.fromkeys(each for each in names if each in self.locals)),
                tuple(takes[other] for other in taken),
                tuple(other for other in mentioned if other in new),
                tuple(assigned),
            )
        )
        self.tuples.update(dict.fromkeys(assigned, number))
        self.point(number, (*written, *wholes, *changed))
        self.fresh.difference_update(mentioned)

    def member(self, assigned: list[str], launch: int, text: str) -> None:
        self.tuples.update(dict.fromkeys(assigned, launch))
        self.wrapper.members.update(dict.fromkeys(assigned, text))
        self.point(launch, tuple(assigned))

    def point(self, launch: int, names: tuple[str, ...]) -> None:
        names = tuple(dict.fromkeys(name for name in names if name in self.tensors))
        for name in names:
            self.wrapper.writes.setdefault(name, []).append(len(self.wrapper.points))
        self.wrapper.points.append(Point(launch, names))

    def has_value(self, name: str) -> bool:
        return name in self.wrapper.writes or (name in self.tensors and name not in self.allocated)

    def mentioned(self, value: ast.expr) -> list[str]:
        names = (node.id for node in ast.walk(value) if isinstance(node, ast.Name))
        return list(dict.fromkeys(name for name in names if name in self.tensors))


def _listed(code: OutputCode) -> dict[int, tuple[str, KernelCall]]:
    """Line -> the kernel's name and the call, for calls with Inductor's comment."""
    return {call.line: (kernel.name, call) for kernel in code.kernels for call in kernel.calls}


def _own_names(function: ast.FunctionDef) -> frozenset[str]:
    """The function's local names."""
    bound = (node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return frozenset((*bound, *(argument.arg for argument in function.args.args)))


def _loaded(names: Iterable[str]) -> list[ast.expr]:
    return [ast.Name(name, ast.Load()) for name in names]


def _without_out(call: ast.Call) -> list[ast.expr]:
    """All of the call but its argument `out=`, of which it does not read the content."""
    return [call.func, *call.args, *(keyword.value for keyword in call.keywords if keyword.arg != "out")]


def _assigned(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def _root(value: ast.expr) -> str:
    """The name at the start of `buf6[0][1]`."""
    while isinstance(value, ast.Subscript):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""


def _called(value: ast.expr) -> str:
    return ast.unparse(value.func) if isinstance(value, ast.Call) else ""


def _lines(statement: ast.stmt | _CallStatement) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _hook(name: str, arguments: list[ast.expr], near: ast.stmt) -> ast.stmt:
    call = ast.Expr(ast.Call(ast.Name(name, ast.Load()), arguments, []))
    return ast.fix_missing_locations(ast.copy_location(call, near))
