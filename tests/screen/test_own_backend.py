"""A run that the program's own backend compiled is called by that backend, wherever it is named."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections import environment
from idbg.schema import events
from idbg.schema.runs import Run, fold
from idbg.views import compared
from idbg.views import environment as environment_view
from idbg_tui.panes.log.event_lines import event_lines
from tests.harness.recorded import log

CALLED = events.BackendsCalled(run=1, backends=("mine",))


def heard() -> Iterator[events.SessionEvent]:
    for event in log("attention"):
        if isinstance(event, events.RunStarted):
            event = replace(event, target=replace(event.target, backend="asked_for", own_backend=True))
        yield event
        if isinstance(event, events.RunStarted):
            yield CALLED


@pytest.fixture
def run() -> Run:
    (run,) = fold(list(heard())).runs.values()
    assert run.backend == "mine"
    return run


def test_the_environment_and_the_switches_of_a_page_name_it(run: Run) -> None:
    assert dict(environment_view.settings(run))["backend"] == "mine"
    assert compared.run_words(run).startswith("mine, ")


def test_the_log_says_which_backend_compiled() -> None:
    (line,) = event_lines(CALLED)
    assert line.text == "compiled by mine, from the program's own torch.compile"


def test_the_page_does_not_name_the_backend_that_was_only_asked_for() -> None:
    history = fold(list(heard()))
    page = str(environment.section(SessionData("s", history)))
    assert "mine" in page and "asked_for" not in page
