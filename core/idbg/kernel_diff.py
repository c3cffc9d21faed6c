"""Compare a model's compiled run with a reference, from a user's own Python: the engine's comparison with a report that
prints itself.
"""

from dataclasses import replace

from idbg.engine.kerneldiff.api import ModelDiff
from idbg.reports.diff import ReadableReport


class KernelDiff(ModelDiff):
    """A model's compiled run, held against a reference.

    `inputs`: a tuple or list of arguments; one tensor; a dict of keyword arguments, where the model takes such; any
    other value, a namedtuple too, is the one argument. `test` and `reference` are backends: "eager" (as a reference the
    plain Python, as a test Dynamo's graph), one that idbg or torch knows by name, or a callable that torch.compile
    takes as a backend; the reference may be "float64", or the outputs that another session kept (`kept.kept`).

    Gradients are compared where there is a `loss` (of the model's output) or with `backward`, which also asks for those
    of inputs that need none, and differentiates all outputs where there is no loss. `backward_if_recorded` does so
    where outputs require gradients; the forward alone is compared where eager cannot differentiate them.

    `mode` "float64" (the default): the test fails where it is more than `k` times worse than the reference, both held
    against the model in float64; where that cannot be run, the report says why and tolerances decide. "tolerance" (the
    default with `atol` or `rtol`): |d| <= atol + rtol * |reference|, torch.testing's where none are given. `tolerances`
    are an output's own (atol, rtol), by its name.

    `sync`: a CUDA device is waited for after each launch, so that its errors are told of at the launch that made them.
    `nan`: the report says where NaN and infinities are born, also where both sides have them.

    `grad`: the forward runs with gradients recorded, as in training, also where none are compared; else without.

    `steps`: the test, eager and float64 then train for so many steps, in lockstep, and the report's `steps` says at
    which the test parts from eager, and in which tensor. A step is what the model does itself, where it is a training
    step that closes over its optimizer; with a `loss`, its backward and plain SGD (learning rate 0.01).

    `runs`: so often runs the test, and the report says what differs. `on_side` is told which side begins, `on_result`
    the report so far after each. `float64` "cpu" computes in float64 on the CPU, "auto" only what is on a device that
    has none. `kept`: a later session may ask for what was compared here.
    """

    def compare(self) -> ReadableReport:
        """Run every side and compare. Raises BadInput for settings that make no sense; the report has what a side
        raises.
        """
        result = self.on_result
        if result is None:
            return ReadableReport.of(super().compare())
        readable = replace(self, on_result=lambda report: result(ReadableReport.of(report)))
        return ReadableReport.of(readable.begin().run())
