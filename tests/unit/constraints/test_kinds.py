"""Rules are found by themselves; those of broken plug-ins are listed and stop nothing."""

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pkgutil import iter_modules

import pytest

from idbg import constraints, plugins
from idbg.accelerators import registry
from idbg.accelerators.parse import parse
from idbg.config.settings import default_accelerator
from idbg.constraints import Constraint, Finding, NodeSignature
from idbg.schema.errors import AcceleratorError

parsing = import_module("idbg.accelerators.parse")


class Depth(Constraint, frozen=True, tag="depth"):
    """A third party's rule."""

    most: int

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        for tensor in signature.tensors:
            if len(tensor.shape) > self.most:
                yield Finding(f"rank is {len(tensor.shape)}", f"at most {self.most}")


NOT_A_RULE = "not a rule"
NO_KINDS = {"base", "checker", "dims", "facts", "globs"}  # what rules are built on


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = [
        EntryPoint("depth", f"{__name__}:Depth", "idbg.constraints"),
        EntryPoint("gone", "no_such_package_anywhere:Rule", "idbg.constraints"),
        EntryPoint("strange", f"{__name__}:NOT_A_RULE", "idbg.constraints"),
    ]
    monkeypatch.setattr(plugins, "points", lambda group: [point for point in points if point.group == group])
    caches = (plugins.load, plugins.names, constraints.kinds, constraints.kind_named, parsing._outcome)
    for cache in caches:
        cache.cache_clear()
    yield
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


def test_the_built_in_kinds_are_the_modules_of_the_package() -> None:
    modules = {module.name for module in iter_modules(constraints.__path__)}
    assert set(constraints.kinds()) == modules - NO_KINDS
    assert constraints.broken_kinds() == {}
    assert all(constraints.kind_named(name) is kind for name, kind in constraints.kinds().items())


def test_what_is_no_rule_is_no_kind_though_a_module_has_its_name() -> None:
    names = (*NO_KINDS, "nonsense", "../ops")
    assert [constraints.kind_named(name) for name in names] == [None] * len(names)


def test_rules_of_ours_are_read_without_a_look_at_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(group: str) -> tuple[EntryPoint, ...]:
        raise AssertionError(group)

    monkeypatch.setattr(plugins, "points", never)
    plugins.names.cache_clear()
    assert parse(registry.find("mock")[0]).rules
    assert registry.is_preset("mock") and default_accelerator("inductor") == "none"


def test_a_plug_ins_rule_is_written_like_any_other(plugged: None) -> None:
    rule, _ = parse('[[rules]]\nkind = "depth"\nmost = 4').rules
    assert type(rule).__name__ == "Depth" and rule.name == "depth"


def test_a_broken_plug_in_is_listed_with_its_error_and_stops_nothing(plugged: None) -> None:
    assert "alignment" in constraints.kinds()
    assert constraints.broken_kinds() == {
        "gone": "ModuleNotFoundError: No module named 'no_such_package_anywhere'",
        "strange": "not a subclass of idbg.constraints.Constraint with a tag",
    }


def test_using_the_rule_of_a_broken_plug_in_says_what_is_broken(plugged: None) -> None:
    with pytest.raises(AcceleratorError, match="No module named") as raised:
        parse('name = "a"\n[[rules]]\nkind = "gone"\n')
    assert raised.value.line == 3


def test_a_rule_is_called_by_its_kind_unless_it_has_a_name() -> None:
    assert (Depth(most=3).name, Depth(most=3, name="three").name) == ("depth", "three")
