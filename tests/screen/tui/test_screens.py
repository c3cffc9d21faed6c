"""Whole screens of recorded sessions, as text, at every size that the layout is made for: what a change does to them is
read in the difference. `pytest tests/screen/tui/test_screens.py --snapshot-update` takes them anew: look at each.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.color_triplet import ColorTriplet
from syrupy.assertion import SnapshotAssertion

from idbg_tui.app import IdbgApp
from tests.harness.recorded import app_of
from tests.harness.screen import settle

pytestmark = pytest.mark.usefixtures("painted")

SIZES = ((60, 15), (80, 24), (120, 40), (200, 55), (300, 80))
PANES = {
    "breaking": {
        "1": "graph",
        "2": "source",
        "3": "node",
        "4": "findings",
        "7": "log",
        "0": "why",
        "-": "switches",
    },
    "planted": {"5": "kernel_diff"},
}
"""Of which recording, by its key."""


def screen_text(app: IdbgApp) -> str:
    """What the screen shows, a line a row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("name", ["resnet", "planted"])
async def test_the_first_screen(name: str, size: tuple[int, int], snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    app = app_of(name, tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert screen_text(app) == snapshot


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("name", PANES)
async def test_a_pane_alone(name: str, size: tuple[int, int], snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    app = app_of(name, tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for key, pane in PANES[name].items():
            await pilot.press(key, *(["z"] if size[0] > 110 else []))
            await settle(pilot)
            assert screen_text(app) == snapshot(name=pane)
            if size[0] > 110:
                await pilot.press("z")


THEMES = ("idbg-dark", "idbg-light", "nord", "gruvbox")
SCENES: dict[str, tuple[str, Sequence[str]]] = {
    "benchmarks": ("benched", ["6"]),
    "rules": ("resnet", ["8"]),
    "repros": ("minified", ["9"]),
    "why": ("breaking", ["0"]),
    "switches": ("switched", ["-"]),
    "log": ("breaking", ["7"]),
    "side by side": ("wrong_pass", ["4", "g", "p"]),
    "palette": ("resnet", [":", *"relu"]),
    "help": ("attention", ["5", "?"]),
    "menu": ("breaking", ["4", "g", "!"]),
    "graph by error": ("planted", ["1", "s", *"error", "enter"]),
}
"""What is pictured: of which recording, after which keys."""


def pictures() -> Iterator[tuple[str, tuple[int, int], str]]:
    """Each scene at two sizes in two themes: together every size in every theme."""
    sizes = (*SIZES[:3], (160, 45), SIZES[3])
    for at, scene in enumerate(SCENES):
        yield from ((scene, sizes[number % 5], THEMES[number % 4]) for number in (2 * at, 2 * at + 1))


def test_every_size_is_pictured_in_every_theme() -> None:
    assert len({(size, theme) for _, size, theme in pictures()}) == 5 * len(THEMES)


def colours_of(app: IdbgApp) -> str:
    """The colours of each row, as runs of so many cells; each kind of colour has a number, and its own line below."""
    kinds: dict[str, int] = {}
    rows = []
    for strip in app.screen._compositor.render_strips():
        runs: list[list[int]] = []
        for text, style, _ in strip:
            kind = kinds.setdefault(str(style), len(kinds))
            if runs and runs[-1][0] == kind:
                runs[-1][1] += cell_len(text)
            else:
                runs.append([kind, cell_len(text)])
        rows.append(" ".join(f"{kind}*{cells}" for kind, cells in runs))
    return "\n".join((*rows, *(f"{number}: {kind}" for kind, number in kinds.items())))


def worded(value: object) -> str:
    return "{}x{}".format(*value) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(("scene", "size", "theme"), list(pictures()), ids=worded)
async def test_a_picture(
    scene: str,
    size: tuple[int, int],
    theme: str,
    snapshot: SnapshotAssertion,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("idbg.views.repros.age", lambda at, now: "2 days")
    name, keys = SCENES[scene]
    app = app_of(name, tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.theme = theme
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        assert screen_text(app) == snapshot(name="text")
        assert colours_of(app) == snapshot(name="colours")
        if folder := os.environ.get("IDBG_PICTURES"):  # to be looked at
            Path(folder, f"{scene}-{size[0]}-{theme}.svg").write_text(app.export_screenshot())


READABLE = 2.0
"""The least contrast of a word with what is behind it; line numbers and dim words on the cursor's row have it."""


def luminance(color: ColorTriplet) -> float:
    """Of 0 to 1, by WCAG 2."""
    parts = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrasts(app: IdbgApp) -> Iterator[tuple[float, str]]:
    """Of each word on the screen."""
    for strip in app.screen._compositor.render_strips():
        for text, style, _ in strip:
            if style is None or style.color is None or style.bgcolor is None or not any(map(str.isalnum, text)):
                continue
            if style.color.triplet and style.bgcolor.triplet:
                dark, light = sorted(map(luminance, (style.color.triplet, style.bgcolor.triplet)))
                yield (light + 0.05) / (dark + 0.05), text


async def test_every_word_can_be_read_in_each_theme(tmp_path: Path) -> None:
    app = app_of("breaking", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        for theme in (*THEMES, "textual-light"):
            app.theme = theme
            await settle(pilot)
            found = sorted(contrasts(app))
            assert len(found) > 100 and found[0][0] >= READABLE, (theme, found[:3])
