"""Route the messages of panes to their controllers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idbg_tui import messages
    from idbg_tui.controllers.table import Controllers


class MessageRoutes:
    """The app's handlers of messages that one controller handles."""

    controllers: "Controllers"

    def on_node_chosen(self, message: "messages.NodeChosen") -> None:
        self.controllers.navigation.choose_node(message)

    def on_kernel_chosen(self, message: "messages.KernelChosen") -> None:
        self.controllers.navigation.choose_kernel(message)

    def on_why_request(self, message: "messages.WhyRequest") -> None:
        self.controllers.deciding.ask(message)

    def on_decision_request(self, message: "messages.DecisionRequest") -> None:
        self.controllers.deciding.go(message)

    def on_row_request(self, message: "messages.RowRequest") -> None:
        self.controllers.navigation.go_to_row(message)

    def on_beside_request(self, message: "messages.BesideRequest") -> None:
        self.controllers.standing_beside.open(message)

    def on_sides_request(self, message: "messages.SidesRequest") -> None:
        self.controllers.standing_beside.open_sides(message)

    def on_stage_chosen(self, message: "messages.StageChosen") -> None:
        self.controllers.navigation.choose_stage(message)

    def on_number_request(self, message: "messages.NumberRequest") -> None:
        self.controllers.navigation.go_to_number(message)

    def on_accelerator_chosen(self, message: "messages.AcceleratorChosen") -> None:
        self.controllers.targeting.take_accelerator(message.name)

    def on_backend_chosen(self, message: "messages.BackendChosen") -> None:
        self.controllers.targeting.take_backend(message.name)

    def on_try_request(self, message: "messages.TryRequest") -> None:
        self.controllers.trying.ask(message)

    def on_pair_request(self, message: "messages.PairRequest") -> None:
        self.controllers.pairing.ask(message)

    def on_line_chosen(self, message: "messages.LineChosen") -> None:
        self.controllers.navigation.choose_line(message)

    def on_switch_request(self, message: "messages.SwitchRequest") -> None:
        self.controllers.switching.take(message)

    def on_switch_undo(self) -> None:
        self.controllers.switching.undo()

    def on_defaults_request(self) -> None:
        self.controllers.switching.put_back()

    def on_repro_request(self, message: "messages.ReproRequest") -> None:
        self.controllers.repros.ask(message)

    def on_script_request(self, message: "messages.ScriptRequest") -> None:
        self.controllers.repros.read(message)

    def on_lower_request(self, message: "messages.LowerRequest") -> None:
        self.controllers.compiling.lower(message)

    def on_version_chosen(self, message: "messages.VersionChosen") -> None:
        self.controllers.editing.choose(message)

    def on_diff_request(self, message: "messages.DiffRequest") -> None:
        self.controllers.comparing.look_into(message)

    def on_attribution_request(self, message: "messages.AttributionRequest") -> None:
        self.controllers.comparing.find_owner(message.launch)

    def on_bench_request(self, message: "messages.BenchRequest") -> None:
        self.controllers.measuring.look_into(message)

    def on_copy_request(self, message: "messages.CopyRequest") -> None:
        self.controllers.files.copy(message)

    def on_trace_request(self, message: "messages.TraceRequest") -> None:
        self.controllers.files.write_trace(message)

    def on_editor_request(self, message: "messages.EditorRequest") -> None:
        self.controllers.files.edit(message)
