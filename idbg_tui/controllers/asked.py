"""Which controller hears what a pane posts?"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idbg_tui import messages
    from idbg_tui.controllers.table import Controllers


class Asked:
    """The app's handlers of what is for one controller alone."""

    controllers: "Controllers"

    def on_node_chosen(self, message: "messages.NodeChosen") -> None:
        self.controllers.navigation.choose_node(message)

    def on_kernel_chosen(self, message: "messages.KernelChosen") -> None:
        self.controllers.navigation.choose_kernel(message)

    def on_why_asked(self, message: "messages.WhyAsked") -> None:
        self.controllers.deciding.ask(message)

    def on_try_asked(self, message: "messages.TryAsked") -> None:
        self.controllers.trying.ask(message)

    def on_pair_asked(self, message: "messages.PairAsked") -> None:
        self.controllers.pairing.ask(message)

    def on_line_chosen(self, message: "messages.LineChosen") -> None:
        self.controllers.navigation.choose_line(message)

    def on_switch_asked(self, message: "messages.SwitchAsked") -> None:
        self.controllers.switching.take(message)

    def on_defaults_asked(self) -> None:
        self.controllers.switching.put_back()

    def on_repro_asked(self, message: "messages.ReproAsked") -> None:
        self.controllers.repros.ask(message)

    def on_script_asked(self, message: "messages.ScriptAsked") -> None:
        self.controllers.repros.read(message)

    def on_lower_asked(self, message: "messages.LowerAsked") -> None:
        self.controllers.compiling.lower(message)

    def on_diff_asked(self, message: "messages.DiffAsked") -> None:
        self.controllers.comparing.look_into(message)

    def on_owner_asked(self, message: "messages.OwnerAsked") -> None:
        self.controllers.comparing.find_owner(message.launch)

    def on_bench_asked(self, message: "messages.BenchAsked") -> None:
        self.controllers.measuring.look_into(message)

    def on_copy_asked(self, message: "messages.CopyAsked") -> None:
        self.controllers.files.copy(message)

    def on_trace_asked(self, message: "messages.TraceAsked") -> None:
        self.controllers.files.write_trace(message)

    def on_editor_asked(self, message: "messages.EditorAsked") -> None:
        self.controllers.files.edit(message)
