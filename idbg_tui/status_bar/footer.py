"""The footer: the keys that work here, and the progress of what runs."""

import time
from collections.abc import Iterable

from rich.cells import cell_len

from idbg.format.amounts import elapsed, wait
from idbg.format.glyphs import LEVELS
from idbg.schema.repros import MinifyProgress
from idbg.views.repros import progress_pieces
from idbg_tui import keymap
from idbg_tui.state import queries, repro_targets
from idbg_tui.state.state import State
from idbg_tui.widgets.bars import BarPart, cells

_LIVE_ONLY = ("run", "cancel", "repro", "minify", "strict", "measure")
_KEYS_ROOM = 40  # cells of the footer that the keys need
_BAR = 10  # cells

TYPING = (("enter", "takes it"), ("esc", "leaves it"))
"""The keys of a line that is typed in."""

LEAVING = (("esc", "closes"),)
"""The keys of a list over the screen, which has the others in its border."""


def help_keys(keys: dict[str, str], *, typing: bool = False) -> list[BarPart]:
    """The right end of every footer: the help and the palette. While `typing` a letter is text, and F1 is the help."""
    of_help, palette = keymap.spelled(keys["help"]).split(" "), keymap.spelled(keys["palette"]).split(" ")
    key = "bold $primary"
    return [("  ", ""), (of_help[-1 if typing else 0], key), (" help ", "$foreground 75%"), (palette[0], key)]


def footer_keys(
    pane_hints: tuple[tuple[str, str], ...], keys: dict[str, str], state: State, width: int, *, typing: bool = False
) -> list[BarPart]:
    """The keys that work here, the pane's own first; as many as have room in `width` cells. While `typing`, letters are
    text: those alone are named that are none."""
    shown = list(pane_hints)
    if typing:
        return bar_keys(shown, width)
    if len(queries.frames(state)) > 1:
        pair = " ".join(keymap.spelled(keys[name]).split(" ")[0] for name in ("frame_before", "frame_after"))
        shown.insert(1, (pair, "frame"))
    wanted = [("quit", "quit"), ("run", "run"), ("repro", repro_targets.key_words(state)), ("edit", "edit")]
    wanted += [("minify", "minify"), ("menu", "menu"), ("next_pane", "pane"), ("zoom", "zoom"), ("memory", "memory")]
    wanted += [("partitions", "partitions"), ("strict", "strict/warn"), ("measure", "measure"), ("charts", "charts")]
    cancel = keymap.spelled(keys["cancel"]).split(" ")[0]
    if (state.running or state.measuring or state.searching) and cancel not in dict(shown):
        shown.insert(1, (cancel, "cancel"))
    taken = {key for key, _ in shown}
    for name, words in wanted:
        key = keymap.spelled(keys[name]).split(" ")[0]
        if key not in taken and (state.live or name not in _LIVE_ONLY):
            shown.append((key, words))
    return bar_keys(shown, width)


def bar_keys(shown: Iterable[tuple[str, str]], width: int) -> list[BarPart]:
    """Keys with their words, as many as have room in `width` cells."""
    pieces: list[BarPart] = []
    for key, words in shown:
        width -= len(key) + len(words) + 3
        if width < 0:
            break
        pieces += [(key, "bold $primary"), (f" {words}  ", "$foreground 75%")]
    return pieces


def _search(search: MinifyProgress, width: int) -> str:
    """How far a search has come, in as many pieces as leave the keys their room."""
    pieces = progress_pieces(search)
    while len(pieces) > 1 and len("minify") + sum(cell_len(piece) + 2 for piece in pieces) > width - _KEYS_ROOM:
        pieces.pop()
    return "".join(f"  {piece}" for piece in pieces)


def footer_progress(state: State, width: int) -> list[BarPart]:
    """What the worker is doing, for how long, and how long it usually takes: in few words where keys need the room."""
    run = state.run
    if state.repro_running:
        return [("writing and trying a repro", "$text-primary")]
    if state.searching and state.cancelling:
        return [("minify", "$text-primary"), ("  stopping: the smallest so far is kept", "")]
    if state.searching and state.search is not None:
        return [("minify", "$text-primary"), (_search(state.search, width), "")]
    if state.edited is not None:
        return [("edited kernel", "$text-primary"), (f"  {state.edited.step or 'starting'}", "")]
    if state.attributing:
        return [("whose error it is: the kernel alone", "$text-primary")]
    if state.measuring:
        from idbg_tui.panes.benchmarks.rows import measured_for, measured_now

        step, whole = measured_for(state, time.time())
        parts = f"measuring {measured_now(state)}", f"  {step}{f', {whole} in all' if whole != step else ''}"
        if sum(map(cell_len, parts)) > width - _KEYS_ROOM:
            parts = measured_now(state, brief=True), f"  {step}"
        return [(parts[0], "$text-primary"), (parts[1], "")]
    if not state.running or run is None:
        return []
    return _compiling(run.phase or "starting", state, width)


def _compiling(phase: str, state: State, width: int) -> list[BarPart]:
    """The phase, the time so far and the usual one, with a bar between them; in fewer words where keys need room."""
    usual, now = queries.usual_seconds(state), elapsed(queries.elapsed(state))
    pieces: list[BarPart] = [(phase, "$text-primary"), (f"  {now}", "")]
    if usual is None:
        return pieces
    for cells_of_bar, words in ((_BAR, f"usually {wait(usual)}"), (_BAR // 2, wait(usual))):
        full = min(round(cells_of_bar * queries.working(state) / usual), cells_of_bar)
        bar = [(f" {LEVELS[-1] * full}", "$text-primary"), (f"{LEVELS[0] * (cells_of_bar - full)} {words}", "")]
        if cells([*pieces, *bar]) <= width - _KEYS_ROOM:
            break
    return [*pieces, *bar]
