"""Parse a wrapper's module: the definition of a kernel, and the arguments that the kernel only writes."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from idbg.analysis.kernel_definition import parameter_names, source_constant
from idbg.engine.instrument.wrapper_lines import Launch


@dataclass(frozen=True)
class Definition:
    """The statement of a wrapper's module that defines a kernel ("" for an extern one), and the kernel's own
    parameters, in order.
    """

    text: str = ""
    parameters: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        """ "cpp", "triton", or "extern"."""
        return "triton" if "async_compile.triton" in self.text else "cpp" if self.text else "extern"


def definition_of(module: str, launch: Launch) -> Definition:
    """The definition of the kernel that this launch of the wrapper calls."""
    name = launch.text.partition("(")[0].removesuffix(".run")
    for statement in ast.parse(module).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=defined)], value=ast.Call() as call) if defined == name:
                constant = source_constant(call)
                found = parameter_names(name, str(constant.value)) if constant else ()
                return Definition(ast.get_source_segment(module, statement) or "", found)
            case _:
                pass
    return Definition()


def only_written(launch: Launch, definition: Definition, changed: Iterable[str]) -> frozenset[str]:
    """The buffers in a launch whose memory it writes without reading it: their previous content must not matter.
    Excludes what is `changed` in place.
    """
    call = ast.parse(launch.text, mode="eval").body
    if not isinstance(call, ast.Call):
        return frozenset()
    outs = {
        keyword.value.id for keyword in call.keywords if keyword.arg == "out" and isinstance(keyword.value, ast.Name)
    }
    roles = zip(call.args, definition.parameters, strict=False)
    outs |= {given.id for given, role in roles if isinstance(given, ast.Name) and role.startswith("out_ptr")}
    names = [node.id for node in ast.walk(call) if isinstance(node, ast.Name)]
    return frozenset(name for name in outs & {*launch.fresh} if names.count(name) == 1) - {*changed}


def around(module: str, needed: Iterable[str]) -> list[str]:
    """The imports and assignments of a wrapper's module that these names depend on, as they are written."""
    statements: dict[str, tuple[int, ast.stmt]] = {}
    body = ast.parse(module).body
    for place, statement in enumerate(body):
        for name in _binds(statement):
            statements[name] = place, statement
    found: dict[int, ast.stmt] = {}
    waiting = list(needed)
    while waiting:
        name = waiting.pop()
        if name in statements and statements[name][0] not in found:
            place, statement = statements[name]
            found[place] = statement
            waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return [ast.get_source_segment(module, found[place]) or "" for place in sorted(found)]


def assignment(module: str, name: str) -> str:
    """The value that the wrapper's `call` assigns to a name, as Python; "" unless it is exactly one statement."""
    functions = (node for node in ast.walk(ast.parse(module)) if isinstance(node, ast.FunctionDef))
    call = next((function for function in functions if function.name == "call"), None)
    assigns = [node for node in ast.walk(call) if isinstance(node, ast.Assign)] if call is not None else []
    values = [each.value for each in assigns for to in each.targets if isinstance(to, ast.Name) and to.id == name]
    texts = {ast.unparse(value) for value in values}
    return texts.pop() if len(texts) == 1 else ""


def _binds(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (each.asname or each.name.partition(".")[0] for each in names)
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case _:
            pass
