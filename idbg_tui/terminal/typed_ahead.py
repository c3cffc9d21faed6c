"""Queue keys that come faster than they are handled: each waits for the effects of the one before.

Textual hands a key to the widget that has the focus when it arrives, and looks for what it means when it comes back
from there. Over SSH several keys arrive in one packet: those after `1`, `/` or `b` would go to the pane of before, and
`D` deletes a rule there.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from textual.app import App
from textual.dom import DOMNode
from textual.events import Key

_ROUNDS = 3
"""Ways from the focus up to the app: of the key itself, of the message that its action posts, of the focus moved."""
_LOOKED_AFTER = 0.5  # seconds: what was closed meanwhile does not answer


class TypedAhead:
    """Lets one key after the other pass to `forward`, which is what Textual does with it."""

    def __init__(self, app: App[Any], forward: Callable[[Key], Awaitable[None]]) -> None:
        self._app, self._forward = app, forward
        self._waiting: deque[Callable[[], Awaitable[None]]] = deque()
        self._turn = 0
        self._at: DOMNode | None = None  # whose queue is gone through

    async def pressed(self, key: Key) -> None:
        """Pass the key on: at once where nothing is under way, else when that is done."""
        await self.then(partial(self._forward, key))

    async def then(self, do: Callable[[], Awaitable[None]]) -> None:
        """Do something after all keys that were typed, and what they led to."""
        if not self._waiting and not any(node.message_queue_size for node in self._way()):
            await do()
            return
        self._waiting.append(do)
        if len(self._waiting) == 1:
            self._wait()

    def _wait(self) -> None:
        self._turn += 1
        self._app.set_timer(_LOOKED_AFTER, partial(self._look, self._turn))
        self._go_up(self._turn, _ROUNDS, self._way())

    async def _look(self, turn: int) -> None:
        """Go on where nobody answers any more: a widget was removed with what it was to do."""
        if turn == self._turn and self._at is not None and self._at.is_running:
            self._app.set_timer(_LOOKED_AFTER, partial(self._look, turn))
        else:
            await self._done(turn)

    def _way(self) -> Sequence[DOMNode]:
        """Whose messages are to be done: those of the focus and all around it, up to the app."""
        return (self._app.focused or self._app.screen).ancestors_with_self

    def _go_up(self, turn: int, rounds: int, way: Sequence[DOMNode]) -> None:
        """Go through the queue of each on the way, `rounds` times, behind all that is in it."""
        for place, node in enumerate(way):
            if node.call_later(self._go_up, turn, rounds, way[place + 1 :]):
                self._at = node
                return
        if rounds > 1:
            self._go_up(turn, rounds - 1, self._way())
        else:
            self._app.call_later(self._done, turn)

    async def _done(self, turn: int) -> None:
        if turn != self._turn or not self._waiting:
            return
        self._turn += 1  # the timer, or what answers after it, comes too late
        self._at = None
        await self._waiting.popleft()()
        if self._waiting:
            self._wait()
