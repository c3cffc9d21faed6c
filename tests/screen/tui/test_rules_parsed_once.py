"""Is a text of rules read once for each change, however many ask what it says?"""

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from textual.message import Message

from idbg.accelerators.model import Accelerator
from idbg.schema.errors import AcceleratorError
from idbg.schema.programs import Program, Target
from idbg.session.session import Session
from idbg_tui.messages import RulesChanged
from idbg_tui.panes.rules.pane import RulesPane
from idbg_tui.state import queries
from idbg_tui.state.state import State
from tests.harness.pane_host import RULES, Host
from tests.harness.rule_bench import SIZE, Bench

parsing = import_module("idbg.accelerators.parse")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each text was read."""
    counts: Counter[str] = Counter()
    really = parsing._read

    def counted(text: str) -> Accelerator:
        counts[text] += 1
        accelerator: Accelerator = really(text)
        return accelerator

    monkeypatch.setattr(parsing, "_read", counted)
    parsing._outcome.cache_clear()
    yield counts
    parsing._outcome.cache_clear()


class Held(Bench):
    """The pane over a real session that is read from disk, and the state that its events make."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.session = Session(Program("model.py"), Target(rules=RULES), output=tmp_path, saved=[])
        self.pane = RulesPane()
        self.app = Host(self.pane, self.state, self.follow)

    def follow(self, state: State, message: Message) -> None:
        if isinstance(message, RulesChanged):
            seen = len(self.session.events)
            self.session.edit_rules(message.text, message.origin)
            state.apply(self.session.events[seen:])
            assert state.run is not None
            queries.has_other_rules(state, state.run)


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.chdir(tmp_path)
    bench = Held(tmp_path)
    with bench.session:
        yield bench


async def test_an_edit_in_the_form_is_read_once(held: Held, read: Counter[str]) -> None:
    async with held.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await held.press(pilot, "plus")
        edited = RULES.replace("= 1 ", "= 2 ")
        assert held.session.target.rules == held.state.rules.text == edited
        assert held.state.accelerator is not None
        assert read == {RULES: 1, edited: 1}


async def test_what_is_typed_is_read_once_a_mistake_too(held: Held, read: Counter[str]) -> None:
    async with held.app.run_test(size=SIZE) as pilot:
        await held.text(pilot)
        await held.press(pilot, "enter", "x")
        typed = RULES.replace("[[rules]]", "x[[rules]]", 1)
        assert (held.editor.text, held.state.rules.line) == (typed, 3)
        assert held.session.target.rules == RULES
        assert read == {RULES: 1, typed: 1}


def test_a_text_that_is_refused_is_refused_in_the_same_words_each_time() -> None:
    refusals = []
    for _ in range(2):
        with pytest.raises(AcceleratorError) as raised:
            parsing.parse("[[rules]]\nkind = 1\n")
        refusals.append(raised.value)
    first, second = refusals
    assert (first.message, first.hint, first.line) == (second.message, second.hint, second.line)
    assert first is not second, "an exception gathers the frames that it passes"
