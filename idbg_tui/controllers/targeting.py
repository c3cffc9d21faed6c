"""Change what the program is compiled for: backend, accelerator, strict rules.

What only one key shows is imported when that key is pressed: the first paint waits for nothing that it does not show.
"""

from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators import registry
from idbg.schema.errors import IdbgError
from idbg.schema.programs import Target
from idbg_tui.controllers.context import Actions, Context


class Targeting:
    """Changes the target, and compiles for it."""

    def __init__(self, context: Context) -> None:
        self._context, self._session, self._state = context, context.session, context.state

    def actions(self) -> Actions:
        """What the keys do."""
        return {"strict": self.turn_strict, "backend": self.choose_backend, "accelerator": self.choose_accelerator}

    def turn_strict(self) -> None:
        """Let a violation stop the compile, or only be reported."""
        self._compile_for(replace(self._session.target, strict=not self._session.target.strict))

    def choose_backend(self) -> None:
        """List the backends, and compile with the one that is chosen."""
        from idbg_tui import choices
        from idbg_tui.widgets.picker import Picker

        current = self._session.target.backend
        listed = choices.backends(self._state.history.worker, current)
        broken = {backend.name for backend in listed if backend.error}
        words = [(backend.name, backend.error or backend.about) for backend in listed]
        self._context.app.push_screen(Picker("Backend", words, current, broken), self.take_backend)

    def choose_accelerator(self) -> None:
        """List the accelerators, and compile under the rules of the one that is chosen."""
        from idbg_tui import choices
        from idbg_tui.widgets.picker import Picker

        current = self._session.target.accelerator
        used = [current, *(run.target.accelerator for run in self._state.history.runs.values())]
        folder = Path(self._state.program.cwd if self._state.program else "")
        listed = choices.accelerators(folder, used)
        self._context.app.push_screen(Picker("Accelerator", listed, current), self.take_accelerator)

    def take_backend(self, name: str | None) -> None:
        """Compile with the backend of this name, unless it is broken."""
        from idbg_tui import choices

        listed = choices.backends(self._state.history.worker, self._session.target.backend)
        error = next((backend.error for backend in listed if backend.name == name), "")
        if error:
            self._context.flash(f"the backend {name} cannot be used: {error}", "error")
        elif name:
            self._context.attempt(lambda: self._session.run(registry.for_backend(self._session.target, name)))
            self._context.show()

    def take_accelerator(self, name: str | None) -> None:
        """Put the rules of the accelerator of this name in force, and compile under them."""
        if not name:
            return
        try:
            text, origin = registry.find(name)
        except IdbgError as error:
            self._context.flash(error.in_one_line, "error")
            return
        if self._session.edit_rules(text, origin) is not None and self._session.live:
            self._compile_for(replace(self._session.target, accelerator=name))

    def _compile_for(self, target: Target) -> None:
        self._context.attempt(lambda: self._session.run(target))
        self._context.show()
