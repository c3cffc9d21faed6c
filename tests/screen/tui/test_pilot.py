"""Does a pilot wait for what the app still does, and is what it waited for on the screen?"""

import asyncio
import threading

import pytest
from textual.app import App, ComposeResult
from textual.pilot import WaitForScreenTimeout
from textual.widgets import Static

from tests.harness.idle import SOON, handled

pytestmark = pytest.mark.usefixtures("painted")


class Answering(App[None]):
    """Shows once it may that a key was pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.may, self.painted = asyncio.Event(), 0

    def compose(self) -> ComposeResult:
        yield Static("nothing")

    async def on_key(self) -> None:
        await self.may.wait()
        self.query_one(Static).update("answered")

    def post_display_hook(self) -> None:
        self.painted += 1


async def test_what_is_being_handled_is_waited_for_and_painted_once() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        await pilot.pause()
        before = app.painted
        asyncio.get_running_loop().call_later(10 * SOON, app.may.set)  # a timer that no wait is for
        await pilot.press("a")
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        assert "answered" in "".join(strip.text for strip in strips) and app.painted == before + 1


async def test_what_is_never_handled_ends_the_test() -> None:
    app = Answering()
    async with app.run_test() as pilot:
        assert await handled(pilot, timeout=0.1)
        await app._press_keys(["a", "a"])
        with pytest.raises(WaitForScreenTimeout):
            await handled(pilot, timeout=0.1)
        app.may.set()


async def test_a_frame_is_painted_although_a_thread_is_held_back() -> None:
    """What happens after the next frame, as leaving the program, happened on a busy machine after the test."""
    app = Answering()
    released, left = threading.Event(), asyncio.Event()
    async with app.run_test() as pilot:
        await pilot.pause()
        held = asyncio.get_running_loop().run_in_executor(None, released.wait)
        await pilot.pause()
        app.query_one(Static).update("leaving")
        app.call_after_refresh(left.set)
        await pilot.pause()
        was_left = left.is_set()
        released.set()
        await held
    assert was_left
