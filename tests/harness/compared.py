"""The recorded comparison (tests/recordings/planted.jsonl): one output is wrong, and the third kernel is to blame."""

from idbg.schema.diff import DiffReport
from idbg_tui.state import queries
from tests.harness.recorded import state_of


def report() -> DiffReport:
    compared = queries.compared_run(state_of("planted"))
    assert compared is not None and compared.diff is not None
    return compared.diff
