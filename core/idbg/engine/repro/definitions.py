"""Collect the source that the program registers with torch, and that a script needs.

Custom ops with their fakes and gradients, lowerings, decompositions, passes in torch's settings, backends, Triton
kernels. Each is cut out of the file that defines it, with all that it needs of it (`slices`); what cannot be cut out is
imported by its name, and a note says so.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType

from torch.fx import GraphModule

from idbg.engine.capture.run import Compiling, RunCapture
from idbg.engine.compat import dynamo, registrations
from idbg.engine.failures.owners import is_own
from idbg.engine.repro.layout import quoted
from idbg.engine.repro.slices import Slice
from idbg.schema.graphs import Graph

_WITH_VALUES = """\
def with_values(kind, values):
    made = object.__new__(kind)
    vars(made).update(values)
    return made"""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Definitions:
    """Sources in the order in which they must run, lines that import libraries, lines that set torch up, and notes."""

    sources: tuple[str, ...] = ()
    imports: frozenset[str] = frozenset()
    settings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Needed:
    """What a script needs: custom ops that it calls ("my::op"), functions and objects that it names, torch's settings
    that hold objects, attributes of torch that the program changed (name and value), the backend by its name, and, with
    `lowerings`, whatever the program lowers or decomposes ops by.
    """

    ops: frozenset[str] = frozenset()
    objects: tuple[object, ...] = ()
    settings: tuple[tuple[str, object], ...] = ()
    patches: tuple[tuple[str, object], ...] = ()
    backend: str = ""
    lowerings: bool = False


def needed_by(module: GraphModule) -> Needed:
    """The custom ops that a graph calls, and the program's functions and Triton kernels."""
    ops: set[str] = set()
    objects: list[object] = []
    for node, target in registrations.called_by(module):
        if op := registrations.op_called(target):
            ops |= set() if registrations.is_torchs(op) else {op}
        elif (kernel := registrations.kernel_launched(node)) is not None:
            objects.append(kernel[0])
        elif inspect.isfunction(target) and _is_users(target):
            objects.append(target)
    return Needed(frozenset(ops), tuple(dict.fromkeys(objects)))


def definitions_of(capture: RunCapture, graph: Graph, compiling: Compiling, backend: str) -> Definitions:
    """The program's code that a script of a graph, or of a part of it, needs to fail in the same way with this backend.

    Raises ValueError which names what cannot be carried, and why.
    """
    held = capture.saved_graphs.get(graph.id)
    calls = needed_by(held.gm) if held is not None else Needed()
    objects: list[object] = [value for value in compiling.options.values() if callable(value)]
    own = compiling.arguments.get("backend", backend)
    backend = own if isinstance(own, str) else ""
    imports: set[str] = set()
    if not isinstance(own, str):
        parts = list(_parts(own))
        objects += [part for part in parts if not isinstance(part, registrations.Made)]
        imports = {f"import {part.module}" for part in parts if isinstance(part, registrations.Made)}
        imports |= {f"import {part.__module__}" for part in parts if inspect.isfunction(part) and not _is_users(part)}
    elif backend in dynamo.backend_names():
        objects.append(dynamo.lookup_backend(backend))
    patches = registrations.patched() if compiling.patches is None else compiling.patches
    objects = [*calls.objects, *filter(_is_users, objects)]
    needed = Needed(calls.ops, tuple(objects), compiling.objects, patches, backend, lowerings=True)
    found = definitions_for(needed, files_of(capture))
    return replace(found, imports=found.imports | imports)


def own_lowerings() -> Iterator[tuple[registrations.TableEntry, registrations.Function]]:
    """The entries of torch's tables of lowerings and decompositions that are, or wrap, functions of the program."""
    for entry in registrations.table_entries():
        if (function := registrations.part_of(entry.value, is_own)) is not None:
            yield entry, function


def _parts(backend: object) -> Iterator[object]:
    """A backend of the program's; of one that a library's function makes, that call and the parts of its arguments."""
    made = registrations.made_by(backend)
    if made is None or _nameless_part(backend) is not None:
        yield backend
        return
    yield made
    for each in (*made.args, *made.kwargs.values()):
        yield from _parts(each) if callable(each) else ()


def _nameless_part(backend: object) -> FunctionType | None:
    """A lambda in the call that makes a backend, if their module has a name for the backend and none for the lambda."""
    made = registrations.made_by(backend)
    for part in (part for each in (*made.args, *made.kwargs.values()) for part in _parts(each)) if made else ():
        if isinstance(part, FunctionType) and part.__name__ == "<lambda>" and not _global_name(part, part.__globals__):
            return part if _global_name(backend, part.__globals__) else None
    return None


def files_of(capture: RunCapture) -> list[str]:
    """The files of the program, as far as the graphs that were traced here and this process's modules tell. What a
    cache gave back was printed by another process: its files may be gone, or another copy of the program.
    """
    traced = (
        graph
        for frame in capture.frames.values()
        for graph in frame.graphs.values()
        if graph.id in capture.saved_graphs
    )
    nodes = {node.file for graph in traced for node in graph.nodes if node.file}
    modules = {str(getattr(module, "__file__", None)) for module in list(sys.modules.values())}
    return sorted(
        file
        for file in nodes | modules
        if file.endswith(".py") and is_own(file) and Path(file).is_absolute() and Path(file).is_file()
    )


def definitions_for(needed: Needed, files: Iterable[str] = ()) -> Definitions:
    """What a script needs of the program. `files` are the program's own, as far as they are known: ops and lowerings
    are looked for there, and in the modules that define them.

    Raises ValueError which names what cannot be carried, and why.
    """
    return _Carrier(needed, tuple(dict.fromkeys(file for file in files if file and is_own(file)))).carried()


def options_as_python(options: Mapping[str, object]) -> str:
    """A dictionary of torch.compile's options, functions by their names. Raises ValueError for one that has none."""
    entries = [f"{key!r}: {named(value) if callable(value) else repr(value)}" for key, value in options.items()]
    return f"{{{', '.join(entries)}}}"


def named(value: object) -> str:
    """The expression by which a script names a function or an object of the program's, once its source is there.

    Raises ValueError where there is no such expression.
    """
    if isinstance(value, _PLAIN):
        return quoted(value) if isinstance(value, str) else repr(value)
    if (part := _nameless_part(value)) is not None:
        return str(_global_name(value, part.__globals__))
    if (made := registrations.made_by(value)) is not None:
        args = [*map(named, made.args), *(f"{key}={named(each)}" for key, each in made.kwargs.items())]
        return f"{made.module}.{made.function}({', '.join(args)})"
    if inspect.isfunction(value) and not _is_users(value):
        return f"{value.__module__}.{value.__qualname__}"
    if inspect.isfunction(value):
        name = _global_name(value, value.__globals__)
        if name is None and value.__code__.co_name == "<lambda>":
            raise ValueError(f"a lambda of {value.__module__}, line {value.__code__.co_firstlineno}, has no name")
        return name or value.__code__.co_name
    kind = type(value)
    if (held := _global_name(value, _globals_of(kind))) is not None:
        return held
    if not hasattr(value, "__dict__") or not all(map(_is_literal, vars(value).values())):
        raise ValueError(f"an object of the class {kind.__name__} has values of its own, and no name in its module")
    return f"with_values({kind.__name__}, {vars(value)!r})" if vars(value) else f"{kind.__name__}()"


class _Carrier:
    def __init__(self, needed: Needed, files: Sequence[str]) -> None:
        self._needed = needed
        self._files = files
        self._slice = Slice()
        self._nested: dict[str, str] = {}
        self._notes: list[str] = []
        self._libraries: list[str] = []

    def carried(self) -> Definitions:
        settings = [line for name, value in self._needed.settings for line in self._setting(name, value)]
        settings += [line for name, value in self._needed.patches for line in self._patch(name, value)]
        for value in self._needed.objects:
            self._named(value)
        for file in self._files if self._needed.backend else ():
            self._slice.named(file, self._needed.backend)
        if self._needed.lowerings:
            for entry, function in own_lowerings():
                settings += self._lowering(entry, function)
        done: set[str] = set()
        while left := sorted((self._slice.ops | self._needed.ops) - done):
            for op in filter(lambda op: not registrations.is_torchs(op), left):
                self._op(op)
            done |= set(left)
        imported = [
            f"{line.split()[1]} is imported from {folder}: its source could not be cut out."
            for line, folder in self._slice.by_name.items()
        ]
        return Definitions(
            (*self._libraries, *self._slice.sources(), *self._nested.values()),
            frozenset(self._slice.imports),
            tuple(settings),
            (*self._notes, *dict.fromkeys(imported)),
        )

    def _lowering(self, entry: registrations.TableEntry, function: registrations.Function) -> list[str]:
        """What lowers or decomposes an op, perhaps none that the script has: where it cannot come, a note says so. The
        line that puts it into torch's table, where the program did so by no function of torch's.
        """
        try:
            if function.__name__ == "<lambda>" and self._slice.line(_file(function), function.__code__.co_firstlineno):
                return []
            expression = self._named(function)
            self._slice.making_room(_file(function))
        except ValueError as error:
            self._notes.append(f"{function.__name__}, which lowers an op in the program, is not here: {error}.")
            return []
        if function is not entry.value or not entry.line or self._slice.is_registered(_file(function), expression):
            return []
        self._slice.imports.add(f"import {entry.table.rpartition('.')[0]}")
        return [f"{entry.line}{expression}"]

    def _op(self, op: str) -> None:
        functions = registrations.functions_of_op(op)
        init = functions.get("init")
        if init is not None and not _is_users(init):
            self._slice.imports.add(f"import {init.__module__}")
            return
        if init is not None and "<locals>" in init.__qualname__:
            self._nested_op(op, functions)
            return
        own = [_file(init)] if init is not None else []
        found = [file for file in dict.fromkeys((*own, *self._files)) if self._slice.op(file, op)]
        if not found and init is not None:
            raise ValueError(f"the custom op {op} cannot be carried: {own[0]} does not define it at its top")
        if not found and (libraries := registrations.loaded_libraries()):
            self._libraries = [f"torch.ops.load_library({quoted(library)})" for library in libraries]
            self._notes.append(f"{op} is of a library that the script loads from where it is.")

    def _nested_op(self, op: str, functions: dict[str, registrations.Function]) -> None:
        """A custom op that a function of the program's defines."""
        init = functions["init"]
        self._inner(init)
        if (fake := functions.get("fake")) is not None:
            self._inner(fake, key=f"{op} fake")
        if (backward := functions.get("backward")) is not None:
            self._inner(backward)
            given = backward.__name__
            if (setup := functions.get("setup")) is not None:
                self._inner(setup)
                given += f", setup_context={setup.__name__}"
            self._nested[f"{op} backward"] = f"{init.__name__}.register_autograd({given})"

    def _named(self, value: object) -> str:
        """Take a function or an object of the program's, and what registers it; the expression that names it."""
        if inspect.isfunction(value) and "<locals>" in value.__qualname__:
            self._inner(value)
            return value.__name__
        expression = named(value)
        root = expression.removesuffix("()")
        if expression.startswith("with_values("):
            root = type(value).__name__
            self._nested["with_values"] = _WITH_VALUES
        file = _home(value)
        if not self._slice.name(file, root):
            raise ValueError(f"{root} cannot be carried: {file} does not define it at its top")
        self._slice.registering(file, root)
        return expression

    def _setting(self, name: str, value: object) -> list[str]:
        """A setting of torch's that holds the program's own function or object, as a line; none where the program's own
        statement of it comes along.
        """
        if any(self._slice.setting(file, name.rpartition(".")[2]) for file in self._files) or not _is_users(value):
            return []
        try:
            return [f"{name} = {self._named(value)}"]
        except ValueError as error:
            raise ValueError(f"{name} cannot be carried: {error}") from None

    def _patch(self, name: str, value: object) -> list[str]:
        """A function of torch's in whose place is one of the program's, as a setting is."""
        function = registrations.function_of(value)
        lines = self._setting(name, function) if _is_users(function) else []
        kind = f"{type(value).__name__}({{}})" if function is not value else "{}"
        parts = [line.partition(" = ") for line in lines]
        self._slice.imports |= {f"import {_module_above(name)}" for _ in lines}
        return [f"{path} = {kind.format(expression)}" for path, _, expression in parts]

    def _inner(self, function: Callable[..., object], key: str = "") -> None:
        """A function inside of a function: its text, and what it has of the one around it."""
        key = key or function.__name__
        if key in self._nested:
            return
        if function.__name__ == "<lambda>":
            raise ValueError(f"a lambda inside of a function ({function.__qualname__}) cannot be cut out")
        try:
            text = textwrap.dedent(inspect.getsource(function)).rstrip("\n")
        except (OSError, TypeError) as error:
            raise ValueError(f"the source of {function.__qualname__} cannot be read ({error})") from None
        variables = inspect.getclosurevars(function)
        for name, value in variables.nonlocals.items():
            self._closed_over(function, name, value)
        for name in (*variables.globals, *_names_of_decorators(text)):
            self._slice.name(_file(function), name)
        self._nested[key] = text

    def _closed_over(self, function: Callable[..., object], name: str, value: object) -> None:
        if inspect.isfunction(value) and value is not function:
            self._inner(value)
        elif inspect.ismodule(value):
            self._slice.imports.add(f"import {value.__name__} as {name}")
        elif isinstance(value, _PLAIN) or _is_literal(value):
            self._nested.setdefault(name, f"{name} = {quoted(value) if isinstance(value, str) else repr(value)}")
        elif value is not function:
            what = f"a {type(value).__name__} of the function around it"
            raise ValueError(f"{function.__qualname__} cannot be carried: its {name} is {what}")


def _module_above(path: str) -> str:
    """The module that holds an attribute, or the class of an attribute."""
    while path not in sys.modules:
        path = path.rpartition(".")[0]
    return path


def _names_of_decorators(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("@"):
            return
        yield line[1:].partition("(")[0].partition(".")[0]


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def _global_name(value: object, held: dict[str, object]) -> str | None:
    return next((name for name, each in held.items() if each is value and not name.startswith("__")), None)


def _globals_of(kind: type) -> dict[str, object]:
    methods = [each for each in vars(kind).values() if inspect.isfunction(each)]
    return methods[0].__globals__ if methods else {}


def _file(value: object) -> str:
    """The file that defines a function or a class; a class of a script that has ended is known by its methods alone."""
    if inspect.isfunction(value):
        return value.__code__.co_filename
    methods = [each for each in vars(value).values() if inspect.isfunction(each)]
    return methods[0].__code__.co_filename if methods else ""


def _home(value: object) -> str:
    """The file that names a function or an object, or defines its class."""
    return _file(value if inspect.isfunction(value) else _nameless_part(value) or type(value))


def _is_users(value: object) -> bool:
    file = _home(value)
    return bool(file) and is_own(file)
