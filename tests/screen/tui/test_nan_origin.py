"""A row of the KernelDiff pane that tells where a NaN is born leads to its launch, or to a node of its line."""

from pathlib import Path

from msgspec.structs import replace

from idbg.schema.faults import NanOrigin
from idbg_tui.panes.kernel_diff.rows import root
from idbg_tui.state import queries
from tests.harness.compared import report
from tests.harness.recorded import app_of
from tests.harness.screen import WIDE, settle


def births() -> tuple[NanOrigin, NanOrigin]:
    """One of eager's, and one of the first bad kernel's."""
    bad = report().culprit
    assert bad is not None and bad.graph is not None
    eagers = NanOrigin(
        side="eager",
        what="nan",
        phase="forward",
        op="log",
        operands="-0.2",
        dtype="float32",
        file=bad.file,
        line=bad.line,
    )
    kernels = replace(
        eagers,
        side="compiled",
        frame=bad.frame,
        part=bad.part,
        kernel=bad.name,
        handle=bad.handle,
        wrapper_line=bad.wrapper_line,
        node=bad.node,
    )
    return eagers, kernels


async def test_enter_leads_to_where_it_is_born(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        compared = queries.compared_run(app.state)
        assert compared is not None and compared.diff is not None
        eagers, kernels = births()
        compared.diff = replace(compared.diff, births=(eagers, kernels))
        pane = app.body.panes["kernel_diff"]
        pane.show(app.state)
        await settle(pilot)
        lines = pane.lines  # type: ignore[attr-defined]
        row = next(at for at, one in enumerate(lines.items) if root(one.key) == ("nan", 0))
        assert lines.text(row).strip().startswith("NaN is born in eager at tests/recordings/planted.py:")
        for number, birth in enumerate((eagers, kernels)):
            row = next(at for at, one in enumerate(lines.items) if root(one.key) == ("nan", number))
            lines.place_cursor(row)
            await pilot.press("5", "enter")
            await settle(pilot)
            assert app.state.selected is not None and app.state.node is not None
            assert (app.state.node.file, app.state.node.line) == (birth.file, birth.line)
        assert app.state.kernel is not None and app.state.kernel.name == kernels.kernel
        assert app.body.current == "source"
