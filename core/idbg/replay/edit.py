"""Change a copy of a repro's text to another backend, accelerator or options.

Only the calls are replaced, so that all lines stay where they are: a script finds its node by its line.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeGuard

from msgspec.structs import replace

from idbg import plugins
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse, unparse
from idbg.constraints import Constraint
from idbg.reduce.sources import Edit, PythonSource
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue

SIGNS = ("REPRODUCED", "WRONG")
"""How the line begins by which a repro reports its failure; the second is of a script of one launch."""

_TORCH_NAMES = {"aot": "inductor"}  # torch's names of idbg's backends
_RULE_BACKENDS = ("aot", "mock")
_ONLY_INDUCTOR = ("options", "mode")  # arguments that other backends refuse


class Changed(NamedTuple):
    """The text to run, with a `note` about other changes; `gone`: it need not run, and `note` says why."""

    text: str
    note: str = ""
    gone: bool = False


class Repro:
    """The text of a script of ours. Raises BadInput where it is none."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        try:
            self._source = PythonSource(text)
        except (SyntaxError, ValueError) as error:
            raise BadInput(f"{name} is not Python: {error}", hint="name a repro.py that idbg wrote") from error
        texts = [node.value for node in ast.walk(self._source.tree) if isinstance(node, ast.Constant)]
        if not any(isinstance(text, str) and text.lstrip().startswith(SIGNS) for text in texts):
            raise BadInput(
                f"{name} is no repro of idbg's: nothing in it says {SIGNS[0]}",
                hint="name a repro.py that x, `idbg minify` or `idbg repro` wrote, or a folder of them",
            )

    @property
    def checks_rules(self) -> bool:
        """Whether a broken rule is what it shows."""
        return any(
            isinstance(node, ast.Attribute) and node.attr == "violations" for node in ast.walk(self._source.tree)
        )

    def with_backend(self, name: str) -> Changed:
        """The script, compiled by another backend. Raises BadInput where that means nothing for it."""
        if not self.checks_rules:
            return self._recompiled("backend", _spelled(name), drops="" if name in ("inductor", "aot") else name)
        others = set(plugins.names("idbg.backends"))
        if name not in {*_RULE_BACKENDS, *others}:
            raise BadInput(f"{name} checks no rules, and a broken rule is what it shows", hint="try aot or mock")
        made = [call for call in self._calls("idbg.backend") if call.args]
        if not made:
            raise self._nothing("idbg.backend")
        return Changed(self._source.edited([self._edit(call.args[0], repr(name)) for call in made]))

    def with_options(self, options: Mapping[str, OptionValue]) -> Changed:
        """The script, compiled with these options over those that it has. Raises BadInput as above."""
        if self.checks_rules:
            raise BadInput("rules are checked before any option is used", hint="try another accelerator")
        return self._recompiled("options", dict(options), drops="")

    def with_accelerator(self, text: str, name: str) -> Changed:
        """The script, checked by another accelerator's rule of the same name, else of the same kind."""
        held = next((node for node in self._source.tree.body if _is_rules(node)), None)
        compared = [node.comparators[0] for node in ast.walk(self._source.tree) if _compares_rules(node)]
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
        edits = [self._edit(held.value, f'"""\n{_escaped(alone)}"""')]
        edits += [self._edit(node, repr(rule.name)) for node in compared]
        return Changed(self._source.edited(edits), "" if rule.name == wanted else f"by its rule {rule.name}")

    def _recompiled(self, key: str, value: object, *, drops: str) -> Changed:
        """The script with another argument of each torch.compile; of options, those that it has stay."""
        edits: list[Edit] = []
        dropped: set[str] = set()
        for node in self._compiles():
            if not isinstance(node, ast.Call):  # a bare decorator
                edits.append(self._edit(node, f"torch.compile({key}={_python(value)})"))
                continue
            kept = [each for each in node.keywords if each.arg != key]
            if drops or key == "options":
                unwanted = _ONLY_INDUCTOR if drops else ("mode",)
                dropped |= {str(each.arg) for each in kept if each.arg in unwanted}
                kept = [each for each in kept if each.arg not in unwanted]
            own = next((each.value for each in node.keywords if each.arg == key), None)
            new = {**_literal(own), **value} if isinstance(value, dict) else value
            words = [ast.unparse(each) for each in (*node.args, *kept)]
            edits.append(self._edit(node, f"torch.compile({', '.join([*words, f'{key}={_python(new)}'])})"))
        if not edits:
            raise self._nothing("torch.compile")
        note = f"without its {' and '.join(sorted(dropped))}" if dropped else ""
        return Changed(self._source.edited(edits), note)

    def _compiles(self) -> Iterator[ast.expr]:
        """Each torch.compile(...), and each bare @torch.compile."""
        yield from self._calls("torch.compile")
        for node in ast.walk(self._source.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield from (each for each in node.decorator_list if ast.unparse(each) == "torch.compile")

    def _calls(self, function: str) -> Iterator[ast.Call]:
        nodes = (node for node in ast.walk(self._source.tree) if isinstance(node, ast.Call))
        return (node for node in nodes if ast.unparse(node.func) == function)

    def _edit(self, node: ast.expr, text: str) -> Edit:
        return Edit(self._source.start(node), self._source.end(node), text.encode())

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
    """The rule for a node that stands alone: it has no stage, and the nodes that it reads are arguments."""
    wider = replace(rule, stages=())
    return replace(wider, roles=()) if "intermediates" in wider.roles else wider


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


# ------------------------------------------------------------- Python


def _spelled(name: str) -> object:
    """The backend as torch.compile takes it: a name of torch's, or an object of idbg's."""
    if name == "mock" or name in plugins.names("idbg.backends"):
        return ast.parse(f'__import__("idbg").backend({name!r}, strict=False)', mode="eval").body
    return _TORCH_NAMES.get(name, name)


def _python(value: object) -> str:
    return ast.unparse(value) if isinstance(value, ast.expr) else repr(value)


def _literal(node: ast.expr | None) -> dict[str, object]:
    try:
        held = ast.literal_eval(node) if node is not None else {}
    except ValueError:  # no plain dictionary: it is replaced as a whole
        return {}
    return held if isinstance(held, dict) else {}
