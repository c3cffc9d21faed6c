"""What does a repro's text say with another backend, accelerator or options? A copy is changed, the user's file never.

Texts are spliced where the parsed script has its calls, so that all else stays: a script finds its node by its line.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeGuard

from msgspec.structs import replace

from idbg import plugins
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse, unparse
from idbg.constraints import Constraint
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue

SIGNS = ("REPRODUCED", "WRONG")
"""How a line begins that says that a script of ours fails as it should; the second is of a script of one launch."""

_PLAIN = {"aot": "inductor"}  # what a backend of ours is to torch
_ASK_RULES = ("aot", "mock")
_ONLY_INDUCTOR = ("options", "mode")  # arguments that other backends refuse


class Changed(NamedTuple):
    """The text as it is to run, and what had to be changed beside; `gone`: it need not run, and `note` says why."""

    text: str
    note: str = ""
    gone: bool = False


class Repro:
    """The text of a script of ours. Raises BadInput where it is none."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        try:
            self._tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            raise BadInput(f"{name} is not Python: {error}", hint="name a repro.py that idbg wrote") from error
        texts = [node.value for node in ast.walk(self._tree) if isinstance(node, ast.Constant)]
        if not any(isinstance(text, str) and text.lstrip().startswith(SIGNS) for text in texts):
            raise BadInput(
                f"{name} is no repro of idbg's: nothing in it says {SIGNS[0]}",
                hint="name a repro.py that x, `idbg minify` or `idbg repro` wrote, or a folder of them",
            )

    @property
    def asks_rules(self) -> bool:
        """Whether a broken rule is what it shows."""
        return any(isinstance(node, ast.Attribute) and node.attr == "violations" for node in ast.walk(self._tree))

    def with_backend(self, name: str) -> Changed:
        """The script, compiled by another backend. Raises BadInput where that means nothing for it."""
        if not self.asks_rules:
            return self._recompiled("backend", _spelled(name), drops="" if name in ("inductor", "aot") else name)
        others = set(plugins.names("idbg.backends"))
        if name not in {*_ASK_RULES, *others}:
            raise BadInput(f"{name} asks no rules, and a broken rule is what it shows", hint="try aot or mock")
        made = [call for call in self._calls("idbg.backend") if call.args]
        if not made:
            raise self._nothing("idbg.backend")
        return Changed(_spliced(self.text, [(_span(self.text, call.args[0]), repr(name)) for call in made]))

    def with_options(self, options: Mapping[str, OptionValue]) -> Changed:
        """The script, compiled with these options over those that it has. Raises BadInput as above."""
        if self.asks_rules:
            raise BadInput("rules are asked before any option is used", hint="try another accelerator")
        return self._recompiled("options", dict(options), drops="")

    def with_accelerator(self, text: str, name: str) -> Changed:
        """The script, held against another accelerator's rule of the same name, else of the same kind."""
        held = next((node for node in self._tree.body if _is_rules(node)), None)
        compared = [node.comparators[0] for node in ast.walk(self._tree) if _compares_rules(node)]
        if not isinstance(held, ast.Assign) or not isinstance(held.value, ast.Constant):
            raise BadInput("it has no rules of an accelerator", hint="only a repro of a broken rule has")
        if not compared:
            raise self._nothing("violations")
        wanted = ast.literal_eval(compared[0])
        old = next((rule for rule in parse(str(held.value.value)).rules if rule.name == wanted), None)
        accelerator = parse(text)
        rule = _alike(accelerator, old, str(wanted))
        if rule is None:
            kind = type(old).__struct_config__.tag if old is not None else wanted
            return Changed(self.text, f"{name} has no rule of the kind {kind}", gone=True)
        alone = unparse(Accelerator(accelerator.name, "", (_unscoped(rule),), accelerator.numerics))
        edits = [(_span(self.text, held.value), f'"""\n{_escaped(alone)}"""')]
        edits += [(_span(self.text, node), repr(rule.name)) for node in compared]
        return Changed(_spliced(self.text, edits), "" if rule.name == wanted else f"by its rule {rule.name}")

    def _recompiled(self, key: str, value: object, *, drops: str) -> Changed:
        """The script with another argument of each torch.compile; of options, those that it has stay."""
        edits: list[tuple[tuple[int, int], str]] = []
        dropped: set[str] = set()
        for node in self._compiles():
            if not isinstance(node, ast.Call):  # a bare decorator
                edits.append((_span(self.text, node), f"torch.compile({key}={_python(value)})"))
                continue
            kept = [each for each in node.keywords if each.arg != key]
            if drops or key == "options":
                unwanted = _ONLY_INDUCTOR if drops else ("mode",)
                dropped |= {str(each.arg) for each in kept if each.arg in unwanted}
                kept = [each for each in kept if each.arg not in unwanted]
            own = next((each.value for each in node.keywords if each.arg == key), None)
            new = {**_literal(own), **value} if isinstance(value, dict) else value
            words = [ast.unparse(each) for each in (*node.args, *kept)]
            edits.append((_span(self.text, node), f"torch.compile({', '.join([*words, f'{key}={_python(new)}'])})"))
        if not edits:
            raise self._nothing("torch.compile")
        note = f"without its {' and '.join(sorted(dropped))}" if dropped else ""
        return Changed(_spliced(self.text, edits), note)

    def _compiles(self) -> Iterator[ast.expr]:
        """Each torch.compile(...), and each bare @torch.compile."""
        yield from self._calls("torch.compile")
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield from (each for each in node.decorator_list if ast.unparse(each) == "torch.compile")

    def _calls(self, function: str) -> Iterator[ast.Call]:
        nodes = (node for node in ast.walk(self._tree) if isinstance(node, ast.Call))
        return (node for node in nodes if ast.unparse(node.func) == function)

    def _nothing(self, call: str) -> BadInput:
        return BadInput(f"{self.name} has no {call} that could be changed", hint="it can be run as it is")


# ------------------------------------------------------------- rules


def _is_rules(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["RULES"]


def _compares_rules(node: ast.AST) -> TypeGuard[ast.Compare]:
    """Whether it is `found.rule == "NAME"`."""
    return isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "rule"


def _alike(accelerator: Accelerator, old: Constraint | None, name: str) -> Constraint | None:
    rules = [rule for rule in accelerator.rules if rule.enabled and (old is None or type(rule) is type(old))]
    return next((rule for rule in rules if rule.name == name), next(iter(rules), None))


def _unscoped(rule: Constraint) -> Constraint:
    """The rule, asked of a node that stands alone: at no stage, and what was computed before it is an argument."""
    wider = replace(rule, stages=())
    return replace(wider, roles=()) if "intermediates" in wider.roles else wider


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


# ------------------------------------------------------------- Python


def _spelled(name: str) -> object:
    """The backend as torch.compile takes it: a name of torch's, or an object of idbg's."""
    if name == "mock" or name in plugins.names("idbg.backends"):
        return ast.parse(f'__import__("idbg").backend({name!r}, strict=False)', mode="eval").body
    return _PLAIN.get(name, name)


def _python(value: object) -> str:
    return ast.unparse(value) if isinstance(value, ast.expr) else repr(value)


def _literal(node: ast.expr | None) -> dict[str, object]:
    try:
        held = ast.literal_eval(node) if node is not None else {}
    except ValueError:  # no plain dictionary: it is replaced as a whole
        return {}
    return held if isinstance(held, dict) else {}


def _span(text: str, node: ast.expr) -> tuple[int, int]:
    """Where a node stands in the text, in characters."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return _offset(text, node.lineno, node.col_offset), _offset(text, node.end_lineno, node.end_col_offset)


def _offset(text: str, line: int, column: int) -> int:
    """`column` counts the bytes of UTF-8, as `ast` does."""
    lines = text.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())


def _spliced(text: str, edits: list[tuple[tuple[int, int], str]]) -> str:
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
