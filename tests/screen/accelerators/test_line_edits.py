"""Does a step or a switch at one line change that value or rule, and nothing else?"""

import pytest

from idbg.accelerators.edit import step, toggle
from idbg.accelerators.parse import parse
from idbg.accelerators.toml_text import TextEdit
from tests.harness.pane_host import RULES


def changed(text: str, change: TextEdit | None) -> str:
    return text if change is None else change.of(text)


@pytest.mark.parametrize(
    ("line", "up", "down"),
    [
        ("multiple = 16  # c", "multiple = 32  # c", "multiple = 8  # c"),
        ("multiple = 1", "multiple = 2", "multiple = 1"),
        ("max_bytes = 0", "max_bytes = 1", "max_bytes = 0"),
        ("max_bytes = 1_024", "max_bytes = 2_048", "max_bytes = 512"),
        ("enabled = true", "enabled = false", "enabled = false"),
        ('severity = "pad"', 'severity = "fallback"', 'severity = "tile"'),
        ('severity = "reject"', 'severity = "reject"', 'severity = "fallback"'),
    ],
)
def test_plus_and_minus_step_a_value_and_leave_the_rest_of_the_line(line: str, up: str, down: str) -> None:
    text = f"[[rules]]\n{line}\n"
    for direction, expected in ((True, up), (False, down)):
        assert changed(text, step(text, 2, up=direction)) == f"[[rules]]\n{expected}\n"


@pytest.mark.parametrize("line", ['kind = "dtype"', "allowed = [1]", "# multiple = 3", "[[rules]]", ""])
def test_lines_without_such_a_value_are_left_alone(line: str) -> None:
    assert step(f"{line}\n", 1, up=True) is None


def test_space_switches_the_rule_around_the_line_off_and_on_again() -> None:
    off = changed(RULES, toggle(RULES, 6))
    assert [rule.enabled for rule in parse(off).rules] == [False, True, True]
    on = changed(off, toggle(off, 4))
    assert on == RULES
    assert toggle(RULES, 1) is None
