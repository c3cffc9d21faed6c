"""Leave out what surrounds the statements: settings, options, modes, marks, gradients, imports, rules."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from idbg.accelerators import edit
from idbg.accelerators.parse import parse
from idbg.engine.minify.shrink.literals import imported, names, source_of
from idbg.engine.minify.shrink.parts import Argument, Parts
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure, Step
from idbg.engine.repro.draft import Breaks, Draft, Input
from idbg.engine.repro.slices import Statement
from idbg.schema.errors import AcceleratorError


def drop_extras(smallest: SmallestFailure) -> None:
    """All of it at once; else what is about arguments, which rarely matters, and of the rest what can go, by halves."""
    draft = smallest.parts.draft
    around: list[Step] = [
        *(_without_setting(line) for line in draft.settings),
        *(_without_mode(mode) for mode in draft.modes),
        *(_without_option(name) for name in _options(draft.how)),
        *(_without_definition(source) for source in reversed(draft.definitions)),
    ]
    inputs = [(each.input.name, each.input) for each in smallest.parts.arguments]
    inside: list[Step] = [
        _without_gradients,
        *(_changed(name, _static) for name, given in inputs if given.dynamic or given.marked),
        _plain_tensors,
        *(_without_import(name) for name in sorted(draft.imports)),
        used_alone,
        _without_other_rules,
    ]
    if not smallest.at_once([*around, *inside]):
        smallest.together(inside)
        smallest.together(around)


def used_alone(parts: Parts) -> Parts | None:
    """Without the arguments that nothing reads."""
    read = names((*parts.draft.statements, parts.draft.result))
    kept = tuple(each for each in parts.arguments if each.input.name in read)
    return replace(parts, arguments=kept) if len(kept) < len(parts.arguments) else None


def _without_setting(line: str) -> Step:
    return _on_draft(lambda draft: replace(draft, settings=_without(draft.settings, line)))


def _without_mode(mode: str) -> Step:
    return _on_draft(lambda draft: replace(draft, modes=_without(draft.modes, mode)))


def _without_definition(source: str) -> Step:
    """Drop a definition unless another one reads it: code that the compiler calls stays complete, or is dropped."""

    def step(draft: Draft) -> Draft:
        left = _without(draft.definitions, source)
        needed = _bound(source) & names((*left, *draft.settings))
        return draft if needed else replace(draft, definitions=left)

    return _on_draft(step)


def _bound(source: str) -> frozenset[str]:
    """The names that a definition gives."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return frozenset()
    return frozenset().union(*(Statement(each, "").binds for each in body))


def _without_import(name: str) -> Step:
    """An import that a line names stays: without it the script could not run."""

    def step(draft: Draft) -> Draft:
        used = names((*draft.statements, draft.result, *draft.settings, *draft.modes, *draft.definitions))
        line = name if name.startswith(("import ", "from ")) else f"import {name}"
        module = f"{line.removeprefix('import ')}."
        is_named = any(module in each for each in (*draft.settings, *draft.definitions)) and module != "torch."
        needed = is_named or imported((line,)) & (used - {"torch"})
        return draft if needed else replace(draft, imports=draft.imports - {name})

    return _on_draft(step)


def _without_option(path: tuple[str, ...]) -> Step:
    """Without an argument of torch.compile, or an entry of its dictionary of options."""

    def step(draft: Draft) -> Draft:
        source, gone = source_of([f"f({draft.how})"]), _options(draft.how).get(path)
        if source is None or gone is None:
            return draft
        return replace(draft, how=source.without(gone).strip().removeprefix("f(").removesuffix(")"))

    return _on_draft(step)


def _options(how: str) -> dict[tuple[str, ...], list[ast.AST]]:
    """What can be left out of the arguments of torch.compile, by its name: all but the backend. Of a dictionary each
    entry, but for the last.
    """
    source = source_of([f"f({how})"])
    calls = [node for node in source.tree.body if isinstance(node, ast.Expr)] if source is not None else []
    found: dict[tuple[str, ...], list[ast.AST]] = {}
    for call in (each.value for each in calls if isinstance(each.value, ast.Call)):
        for each in call.keywords:
            if not each.arg or each.arg == "backend":
                continue
            held = each.value
            entries = [*zip(held.keys, held.values, strict=True)] if isinstance(held, ast.Dict) else []
            for key, value in entries:
                if key is not None:
                    found[each.arg, ast.unparse(key)] = [key, value] if len(entries) > 1 else [each]
            if not entries:
                found[each.arg,] = [each]
    return found


def _without_gradients(parts: Parts) -> Parts | None:
    return _on_inputs(parts, lambda given: replace(given, requires_grad=False))


def _plain_tensors(parts: Parts) -> Parts | None:
    return _on_inputs(parts, lambda given: replace(given, is_weight=False))


def _static(given: Input) -> Input:
    return replace(given, dynamic=(), marked=())


def _changed(name: str, change: Callable[[Input], Input]) -> Step:
    return lambda parts: _on_inputs(parts, lambda given: change(given) if given.name == name else given)


def _on_inputs(parts: Parts, change: Callable[[Input], Input]) -> Parts | None:
    def changed(argument: Argument) -> Argument | None:
        new = change(argument.input)
        return replace(argument, input=new) if new != argument.input else None

    return parts.changed(changed)


def _on_draft(change: Callable[[Draft], Draft]) -> Step:
    def step(parts: Parts) -> Parts | None:
        changed = change(parts.draft)
        return replace(parts, draft=changed) if changed != parts.draft else None

    return step


def _without(items: Sequence[str], item: str) -> tuple[str, ...]:
    return tuple(each for each in items if each != item)


def _without_other_rules(parts: Parts) -> Parts | None:
    """The accelerator's rules without those that the check does not ask for."""
    draft = parts.draft
    if not draft.rules or not isinstance(draft.check, Breaks):
        return None
    text = draft.rules
    try:
        rules = parse(text).rules
        for number in reversed(range(edit.count(text))):
            if number < len(rules) and rules[number].name != draft.check.rule:
                text = edit.remove_rule(text, number)
    except AcceleratorError:
        return None
    return replace(parts, draft=replace(draft, rules=text)) if text != draft.rules else None
