"""The pane of switches over a live session without a worker, with a few switches listed."""

from textual.pilot import Pilot

from idbg.schema import events
from idbg.schema.programs import Switch
from idbg_tui.app import IdbgApp
from idbg_tui.panes.switches.pane import SwitchesPane
from tests.harness.live import FakeSession
from tests.harness.screen import settle

LISTED = (
    Switch(name="mode", place="target", group="torch.compile", type="str", default="", choices=("", "max-autotune")),
    Switch(name="max_autotune", group="autotuning", type="bool", default=False, meaning="try\nthem all"),
    Switch(name="epilogue_fusion", group="fusion", type="bool", default=True),
    Switch(name="dynamo.recompile_limit", place="setting", group="Dynamo", type="int", default=8),
)


async def open_switches(pilot: Pilot[None], app: IdbgApp, session: FakeSession) -> SwitchesPane:
    await settle(pilot)
    session.emit(events.SwitchesListed(switches=LISTED))
    await settle(pilot)
    await pilot.press("minus")
    await settle(pilot)
    assert app.body.current == "switches"
    return app.query_one(SwitchesPane)
