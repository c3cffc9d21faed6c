"""Edit a kernel's source in the user's editor, and try it in place of the original."""

from idbg.analysis.kernel_definition import first_line
from idbg.schema.code import Kernel
from idbg.session.store import SUFFIXES
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.messages import KernelChosen, SourceRequest, VersionChosen
from idbg_tui.panes.source.sheets import why_no_kernel
from idbg_tui.state import queries
from idbg_tui.state.state import KernelOfRun


class Editing:
    """Opens the shown kernel's source, tries what the editor left, and shows its versions; `editor` is the settings',
    or "".
    """

    def __init__(self, context: Context, editor: str) -> None:
        self._context, self._state, self._editor = context, context.state, editor
        self._refused: dict[KernelOfRun, str] = {}  # the last text of a kernel that was not tried

    def actions(self) -> Actions:
        """What the keys do."""
        return {"edit_kernel": self.edit}

    def edit(self) -> None:
        """Leave the screen to the editor with the shown version of the kernel, or the text that was refused last; try
        what it leaves.
        """
        kernel, session = queries.shown_kernel(self._state), self._context.session
        if kernel is None:
            self._context.flash(why_no_kernel(self._state))
        elif not kernel.source:
            self._context.flash(
                f"{kernel.name} is an op of a library, without a source: . in 2 Source goes to a kernel"
            )
        elif not session.live:
            self._context.flash(
                f"saved: idbg kernel {session.folder.name} {kernel.name} --edit FILE tries an edited one"
            )
        elif self._state.edited is not None:
            self._context.flash("an edited kernel is tried already: c stops it")
        else:
            self._context.attempt(lambda: self._edit(kernel))
            self._context.app.refresh()

    def _edit(self, kernel: Kernel) -> None:
        """Raises BadInput where there is no editor, or the text cannot be tried."""
        from idbg_tui.terminal import suspend

        run, shown = self._state.shown, queries.shown_edit(self._state, kernel)
        assert run is not None
        key = (run.number, *kernel.key)
        before = shown.text if shown is not None else kernel.source
        text = self._refused.get(key, before)
        line = shown.line if shown is not None and shown.line else first_line(text)
        name = kernel.name[:80] + SUFFIXES.get(kernel.source_language, ".txt")
        left = suspend.edit_text(self._context.app, name, text, line, self._editor)
        if left == before:
            self._refused.pop(key, None)
            self._context.flash("nothing was changed: nothing is tried")
            return
        self._refused[key] = left  # E goes on with it if it is refused
        version = self._context.session.edit_kernel(run.number, kernel, left)
        del self._refused[key]
        self._context.flash(f"version {version} of {kernel.name} is tried (c stops it)")

    def choose(self, chosen: VersionChosen) -> None:
        """Show a version of a kernel's source, or the original: of an earlier run where the shown one has the same."""
        run, shown, app = self._state.history.runs[chosen.run], self._state.shown, self._context.app
        source = next((kernel.source for kernel in run.kernels if kernel.key == chosen.kernel), None)
        same = (
            each for each in (shown.kernels if shown else ()) if each.key == chosen.kernel and each.source == source
        )
        if (kernel := next(same, None)) is None:
            self._context.flash(f"the run that is shown has another {chosen.kernel[2]} than run {run.number}")
            return
        edits = (edit for edit in run.edits_of(*chosen.kernel) if edit.version == chosen.version)
        self._state.choose_version(kernel, next(edits, None))
        app.post_message(KernelChosen(*chosen.kernel))
        app.post_message(SourceRequest())
