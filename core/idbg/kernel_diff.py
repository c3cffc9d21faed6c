"""Compare a compiled model with a reference from Python: the engine's comparison, with a printable report."""

from dataclasses import replace

from idbg.engine.kerneldiff.api import ModelDiff
from idbg.reports.diff import ReadableReport


class KernelDiff(ModelDiff):
    """Compares a compiled model with a reference.

    `inputs`: a tuple or list of positional arguments, one tensor, or a dict of keyword arguments; any other value, such
    as a namedtuple, is the only argument. `test` and `reference` are backends: "eager" (as the reference plain Python,
    as the test Dynamo's graphs), a name that idbg or torch knows, or a callable that torch.compile accepts. `reference`
    can also be "float64", or the outputs that an earlier session saved (`saved_outputs.load_outputs`).

    Gradients are compared when there is a `loss` (a function of the model's output) or with `backward=True`, which also
    computes gradients of inputs that require none, and without a loss differentiates all outputs.
    `backward_if_recorded` compares them where outputs require gradients; where eager cannot differentiate these, only
    the forward is compared.

    `mode="float64"` (default): the test fails if its error is more than `k` times the reference's, both measured
    against the model in float64. If float64 cannot run, the report gives the reason and the mode is "rounding".
    `mode="rounding"`: it fails if it is beyond the tolerances and its distance from eager is more than `k` times that
    of eager runs whose ops round differently. This takes no more memory than eager. What cannot be measured has no
    verdict.
    `mode="tolerance"` (default with `atol` or `rtol`): |d| <= atol + rtol * |reference|, with torch.testing's defaults.
    `tolerances` maps an output's name to its own (atol, rtol).

    `sync`: waits for a CUDA device after each launch, so that its errors are reported at the launch that caused them.
    `nan`: also reports where NaN and infinities originate when both sides have them.

    `grad`: records gradients in the forward, as in training, even where none are compared.

    `steps`: additionally trains the test, eager and float64 for this many steps in lockstep; the report's `steps` names
    the first step and tensor at which the test diverges from eager. A step is the model's own, if it is a training step
    that closes over its optimizer; with a `loss`, its backward and plain SGD (learning rate 0.01).

    `runs`: how often the test runs; the report lists what differs between runs. `on_side` is called with the name of
    each side that begins, `on_result` with the partial report after each. `float64="cpu"` computes float64 on the CPU;
    "auto" does so only for devices without float64. `memory`: the bytes of its device that waiting float64 values may
    have, 0 for what is free there; the rest moves to host memory, then to a file. `kept`: a later session may compare
    with these outputs.
    """

    def compare(self) -> ReadableReport:
        """Run every side and compare. Exceptions of a side are in the report. Raises BadInput for invalid settings."""
        result = self.on_result
        if result is None:
            return ReadableReport.of(super().compare())
        readable = replace(self, on_result=lambda report: result(ReadableReport.of(report)))
        return ReadableReport.of(readable.begin().run())
