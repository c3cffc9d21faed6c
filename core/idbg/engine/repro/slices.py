"""Cut the statements that define a name out of the user's files, with all that they need.

The text is read and never run: constants, functions and classes are copied, imports of libraries kept, and names of the
user's other files cut out of those. What cannot be cut out is imported by its name.
"""

import ast
import dis
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType

from idbg.engine.failures.owners import is_own
from idbg.reduce.sources import bound_by_imports

_REGISTERS = re.compile(r"(^|_)(register\w*|impl\w*|define|fallback|fallthrough|custom_op|triton_op)$")
_MAKES_OPS = ("custom_op", "triton_op", "Library", "PatternMatcherPass")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_OPS = re.compile(r"\bops\.(\w+)\.(\w+)")


class Uncuttable(ValueError):
    """A statement cannot be cut out of its file; the message says why."""


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a file: its text, the names that it binds and those that it reads."""

    node: ast.stmt
    text: str

    @cached_property
    def binds(self) -> frozenset[str]:
        """Names that the module has by it."""
        if isinstance(self.node, Definition):
            return frozenset({self.node.name})
        stored = {each.id for each in _outside_of_functions(self.node) if isinstance(each.ctx, ast.Store)}
        return frozenset(bound_by_imports(self.node) | stored)

    @cached_property
    def reads(self) -> frozenset[str]:
        """Names of the module that it needs as it runs, or once it is called."""
        return frozenset(_globals_of(compile(ast.Module([self.node], []), "<statement>", "exec", dont_inherit=True)))

    @cached_property
    def sets(self) -> frozenset[str]:
        """Names of the attributes that it sets."""
        targets = self.node.targets if isinstance(self.node, ast.Assign) else ()
        return frozenset(each.attr for each in targets if isinstance(each, ast.Attribute))

    @cached_property
    def fills_table(self) -> bool:
        """Whether it sets entries of something: `TABLE[KEY] = ...`."""
        targets = self.node.targets if isinstance(self.node, ast.Assign) else ()
        return any(isinstance(each, ast.Subscript) for each in targets)

    @cached_property
    def registers(self) -> str:
        """The text of what it registers with: decorators, or a call; "" where it does not."""
        calls: list[ast.expr] = []
        if isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            calls = self.node.decorator_list
        elif isinstance(self.node, ast.Expr | ast.Assign):
            calls = [self.node.value]
        return "\n".join(ast.unparse(each) for each in calls if _REGISTERS.search(_called(each)))


@dataclass
class Slice:
    """What was cut out of the user's files so far. `imports` are lines; `folders` of modules that are imported by
    their name; `ops` the custom ops that the text calls ("my::op").
    """

    kept: dict[str, set[int]] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    by_name: dict[str, str] = field(default_factory=dict)
    ops: set[str] = field(default_factory=set)
    _homes: dict[str, str] = field(default_factory=dict)

    def name(self, file: str, name: str) -> bool:
        """Take what binds the name at the top of the file; False where nothing there does."""
        found = [at for at, each in enumerate(statements(file)) if name in each.binds]
        for at in found:
            statement = statements(file)[at]
            if isinstance(statement.node, ast.Import | ast.ImportFrom):
                self._import(file, statement.node, name)
            else:
                self._take(file, at)
        return bool(found) or self._of_all_names(file, name)

    def _of_all_names(self, file: str, name: str) -> bool:
        """Take what binds the name by `from MODULE import *`; False where nothing does."""
        nodes = (each.node for each in statements(file))
        for node in (node for node in nodes if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"):
            module = "." * node.level + (node.module or "")
            home = file_of(module, file)
            if home is not None and is_own(home):
                if self.name(home, name):
                    return True
            elif hasattr(sys.modules.get(module), name):
                self.imports.add(f"from {module} import {name}")
                return True
        return False

    def op(self, file: str, op: str) -> bool:
        """Take what defines, implements or lowers a custom op ("my::op") in the file; False where nothing does."""
        space, _, name = op.partition("::")
        libraries = [
            at for at, each in enumerate(statements(file)) if re.search(rf"Library\(\s*['\"]{space}['\"]", each.text)
        ]
        mentioned = re.compile(rf"\b{re.escape(op)}\b|\bops\.{re.escape(space)}\.{re.escape(name)}\b")
        named = [at for at, each in enumerate(statements(file)) if mentioned.search(each.registers)]
        for at in (*libraries, *named):
            self._take(file, at)
        return bool(named or libraries)

    def registering(self, file: str, name: str) -> None:
        """Take the statements that register what is at the top of the file under this name."""
        for at, each in enumerate(statements(file)):
            by_call = each.registers and isinstance(each.node, ast.Expr)
            if (by_call or each.fills_table) and name in each.reads:
                self._take(file, at)

    def is_registered(self, file: str, name: str) -> bool:
        """Whether a statement at the top of the file registers what has this name there, by a function of torch."""
        return any(each.registers and (name in each.reads or name in each.binds) for each in statements(file))

    def line(self, file: str, line: int) -> bool:
        """Take the statement (no definition) at the top of the file that has this line, and what registers it."""
        spans = [(at, each.node) for at, each in enumerate(statements(file))]
        found = [
            at
            for at, node in spans
            if node.lineno <= line <= (node.end_lineno or 0) and not isinstance(node, Definition)
        ]
        for at in found:
            self._take(file, at)
            for name in statements(file)[at].binds:
                self.registering(file, name)
        return bool(found)

    def making_room(self, file: str) -> None:
        """Take the statements that take entries out of a table (`NAME.pop(...)`, `del NAME[...]`), as who registers
        another decomposition must: torch refuses a second one.
        """
        for at, each in enumerate(statements(file)):
            if _takes_entries_out(each.node):
                self._take(file, at)

    def named(self, file: str, name: str) -> None:
        """Take the statements that register something under this name, which stands in them as text."""
        for at, each in enumerate(statements(file)):
            if repr(name) in each.registers:
                self._take(file, at)

    def setting(self, file: str, name: str) -> bool:
        """Take the statements that set an attribute of this name of something ("config.NAME = ..."); False where there
        is none.
        """
        found = [at for at, each in enumerate(statements(file)) if name in each.sets]
        for at in found:
            self._take(file, at)
        return bool(found)

    def sources(self) -> list[str]:
        """The statements as text, those of a file before those of the files that need them."""
        imported = [
            f"sys.path.insert(0, {str(folder)!r})\n{line}  # noqa: E402"
            for line, folder in sorted(self.by_name.items())
        ]
        return imported + [statements(file)[at].text for file in self.kept for at in sorted(self.kept[file])]

    def _take(self, file: str, at: int) -> None:
        if at in self.kept.get(file, ()):
            return
        statement = statements(file)[at]
        for name in statement.binds:
            if self._homes.setdefault(name, file) != file:
                raise Uncuttable(f"{Path(file).name} and {Path(self._homes[name]).name} both have a {name}")
        self.kept.setdefault(file, set()).add(at)
        for name in sorted(statement.reads):
            self.name(file, name)
        self.kept[file] = self.kept.pop(file)  # what it needs of other files comes before it
        self.ops |= {f"{space}::{name}" for space, name in _OPS.findall(statement.text)}
        if any(maker in statement.text for maker in _MAKES_OPS):
            self._take_registrations(file, statement.binds)

    def _take_registrations(self, file: str, names: frozenset[str]) -> None:
        """Take the registrations for these ops or libraries: kernels, fakes, gradients."""
        for at, each in enumerate(statements(file)):
            if each.registers and any(re.search(rf"\b{re.escape(name)}\b", each.registers) for name in names):
                self._take(file, at)

    def _import(self, file: str, node: ast.Import | ast.ImportFrom, name: str) -> None:
        alias = next(each for each in node.names if (each.asname or each.name).partition(".")[0] == name)
        module = alias.name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
        home = file_of(module, file)
        if home is None or not is_own(home):
            self.imports.add(ast.unparse(_alone(node, alias)))
            return
        cuttable = isinstance(node, ast.ImportFrom) and alias.asname in (None, alias.name)
        if cuttable and self.name(home, alias.name):
            return
        folder, module = module_of(home)
        line = f"import {module}" if isinstance(node, ast.Import) else f"from {module} import {alias.name}"
        self.by_name[line + (f" as {alias.asname}" if alias.asname else "")] = folder


@lru_cache(maxsize=64)
def statements(file: str) -> tuple[Statement, ...]:
    """The statements at the top of a file, but for what only runs where the file is the program."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        body = ast.parse(text).body
    except (OSError, ValueError, SyntaxError) as error:
        raise Uncuttable(f"{file} cannot be read: {error}") from None
    lines = text.splitlines()
    made: list[Statement] = []
    for node in body:
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        made.append(Statement(node, "\n".join(lines[first - 1 : node.end_lineno])))
    return tuple(made)


def file_of(module: str, file: str) -> str | None:
    """The file of a module that a file imports; None where it is not known, or has none."""
    level = len(module) - len(module.lstrip("."))
    name = module.lstrip(".")
    folder = Path(file).resolve().parent
    for _ in range(level - 1):
        folder = folder.parent
    place = folder.joinpath(*name.split(".")) if name else folder
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return str(path)
    return getattr(sys.modules.get(name), "__file__", None) if not level else None


def module_of(file: str) -> tuple[str, str]:
    """The folder that must be on Python's path for a file to be imported, and the name that it has then."""
    path = Path(file).resolve()
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return str(folder), ".".join(parts)


def _alone(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)


def _outside_of_functions(node: ast.AST) -> Iterator[ast.Name]:
    """The names of a statement, but for those inside of functions and classes."""
    if isinstance(node, ast.Name):
        yield node
    if not isinstance(node, Definition | ast.Lambda):
        for each in ast.iter_child_nodes(node):
            yield from _outside_of_functions(each)


def _globals_of(code: CodeType) -> Iterator[str]:
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(each.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _takes_entries_out(node: ast.stmt) -> bool:
    if isinstance(node, ast.Delete):
        return all(isinstance(each, ast.Subscript) for each in node.targets)
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "pop" and isinstance(called.value, ast.Name)


def _called(node: ast.expr) -> str:
    """The last part of what is called, also of what that gives: "register_lowering" of `register_lowering(op)(f)`."""
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
