"""Copy to the clipboard, open the editor, write reports and traces."""

import subprocess
import sys
from pathlib import Path

from idbg.config.environment import importable
from idbg.format.amounts import size
from idbg.format.failures import place_of
from idbg.schema.decisions.inductor import Span
from idbg_tui.controllers.context import Actions, Context, Reasons
from idbg_tui.messages import CopyRequest, EditorRequest, TraceRequest

_NO_LINE = "no line of your program is known for this node"


class Files:
    """Copies text, writes files, and opens files in the user's editor; `editor` is the settings', or ""."""

    def __init__(self, context: Context, editor: str) -> None:
        self._context, self._state, self._editor = context, context.state, editor

    def actions(self) -> Actions:
        """What the keys do."""
        return {"copy": self.copy_nothing, "edit": self.edit_line, "report": self.write_report}

    def copy_nothing(self) -> None:
        """Where the pane has nothing of its own to copy."""
        self._context.flash(self._why_nothing_copied())

    def _why_nothing_copied(self) -> str:
        return f"there is nothing to copy in {self._context.body.panes[self._context.body.current].label}"

    def reasons(self) -> Reasons:
        return {
            "edit": lambda: "" if self._line() else _NO_LINE,
            "copy": self._why_nothing_copied,
        }

    def edit_line(self) -> None:
        """Open the selected node's line; where the last run failed before it had any, the line of the failure."""
        if (line := self._line()) is not None:
            self.edit(EditorRequest(*line))
        else:
            self._context.flash(_NO_LINE)

    def _line(self) -> tuple[str, int] | None:
        node, run, program = self._state.node, self._state.run, self._state.program
        cause = run and (run.failure or run.cause)
        file, line = place_of(cause) if cause and (node is None or self._state.shown is not run) else ("", 0)
        if file:
            return file, line
        if node is not None and node.file:
            return node.file, node.line
        return (program.path, 1) if program is not None and not program.module else None

    def copy(self, request: CopyRequest) -> None:
        """Put a text on the clipboard, in a thread: a program that takes it may be slow."""
        from idbg_tui.terminal import suspend

        app, folder = self._context.app, str(self._context.session.folder)

        def copy() -> None:
            sentence = suspend.copy(app, request.text, request.what, folder)
            app.call_from_thread(self._context.flash, sentence)

        app.run_worker(copy, thread=True, exclusive=True, group="copy")

    def write_trace(self, request: TraceRequest) -> None:
        """Write a run's time as Perfetto reads it: to the session's folder; of a saved session, which stays as it is,
        to the present one.
        """
        from idbg.reports import chrome_trace

        run, session = self._state.history.runs.get(request.run), self._context.session
        if run is None or not run.decided.last(Span):
            self._context.flash("no times were recorded in this run: there is nothing to write")
            return
        folder = session.folder if session.live else Path.cwd()
        name = f"trace-run-{run.number}.json" if session.live else f"{session.folder.name}-trace-{run.number}.json"
        if self._context.attempt(lambda: chrome_trace.write(run, folder / name)):
            self._context.flash(f"written: {folder / name}; ui.perfetto.dev opens it")

    def write_report(self) -> None:
        """Write the session as one page: to its folder; of a saved session, which stays as it is, to the present one.

        In a process of its own, which reads what is on disk: it takes a second, and keys are answered meanwhile.
        """
        session, app = self._context.session, self._context.app
        page = session.folder / "report.html" if session.live else Path.cwd() / f"{session.folder.name}.html"
        command = [sys.executable, "-P", "-m", "idbg", "report", str(session.folder), "-o", str(page)]

        def write() -> None:
            done = subprocess.run(
                command, env=importable(), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
            )
            errors = done.stderr.strip().splitlines() or [f"the report ended with status {done.returncode}"]
            result = f"written: {page} ({size(page.stat().st_size)})" if done.returncode == 0 else errors[0]
            app.call_from_thread(self._context.flash, result)

        self._context.flash("the report is written …")
        app.run_worker(write, thread=True, exclusive=True, group="report")

    def edit(self, request: EditorRequest) -> None:
        """Leave the screen to the editor until it ends; a text that has no file becomes the rules."""
        from idbg_tui.terminal import suspend

        app = self._context.app

        def edit() -> None:
            if request.text is None:
                suspend.edit(app, request.path, request.line, self._editor)
                return
            text = suspend.edit_text(app, request.path, request.text, request.line, self._editor)
            if text != request.text:
                self._context.session.edit_rules(text)

        self._context.attempt(edit)
        app.refresh()
