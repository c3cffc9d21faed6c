"""Records of what is to be known of a comparison or a bisection beside its figures. `views/remarks` words them."""

from typing import Literal

import msgspec

# how a maker is proven
_Unreached = Literal["never run in eager"]
_Proof = Literal[
    "right without it",
    "right before it",
    "right anew",
    "right in Python",
    "undeclared",
    "undeclared alias",
    "wrong uncompiled",
    "so uncompiled",
    _Unreached,
]
_Reuse = Literal[
    "returned for it", "overwritten", "not written", "reused", "reused, read", "argument overwritten", "read late"
]
# why a stage or a launch was not judged, or what limits its verdict
_After = Literal["after nonfinite", "after rounding", "after alias"]
_Memory = Literal["alias made", "alias lost", "alias elsewhere"]
_Stage = Literal["as dynamo", "other draws than before", "not reported", _After, _Memory]
# of the models and layers of another compiler
_Layer = Literal[
    "random part",  # the node `subject` draws random numbers
    "from a file",  # `subject` loaded the model
    "no outputs",  # `subject` cannot run with more outputs: `detail`
    "no reference",  # what computes `subject` cannot be run by the compiler's reference: `detail`
    "reference too",
    "right op by op",
    "right by reference",
    "right apart",
    "model right before it",
    "no node's value",  # the layer of `subject` leaves none
    "no dispatch's value",
    "not run as output",
    "lines lost",
    "no dispatch wrong",
]
_NotJudged = Literal[_Stage, "narrow", "own way", "none observed", _Layer]
_NotCompared = Literal[
    "not saved", "other arguments", "not called", "parts unknown", "node unknown", "maker unknown", "error"
]
_Step = Literal["step of a node", "step of a bad node"]
_OfLaunch = Literal["no launch", "bisected", "input overwritten", "inside a node", "not run", "input unknown", _Step]
# why a tensor was not compared, how it was judged, or why a criterion does not decide
_Unreadable = Literal["meta", "nested", "freed", "no values", "several tensors", "packed", "no arithmetic"]
_Rounding = Literal["rounded", "by eager's rounding", "rounding unknown"]
_Judged = Literal[
    "rounded",
    "other seed",
    "eager far",
    "no such float64",
    "no more exact",
    "float64 decides",
    "beside threshold",
    "zero but for rounding",  # so much is left of it, on each side: `subject`
    _Rounding,
]
_Form = Literal["on one side", "types", "same tensor"]
_OfTensor = Literal["not run yet", "side failed", "compared on", "eager varies", _Unreadable, _Judged, _Form]
# why side effects were not judged
_Effect = Literal["eager's effects vary", "only while compiling", "asks compiler", "too much state"]
# why steps of training were not judged, or not in float64
_OfSteps = Literal["nothing changes", "steps skipped", "without float64"]
# why a bisection has no answer
_Good = Literal["good fails", "good fails otherwise"]
_OfBisection = Literal["neither fails", "both fail", "fail otherwise", "fails without", "bad passes", _Good]
RemarkKind = Literal[
    "all outputs",  # gradients are of all outputs at once
    "first calls",  # of a script's functions
    "later call",  # `subject` is wrong, the call number `by` was right, and `detail` changed since
    "later call not judged",  # `subject`, for the reason `detail`
    "later calls",  # those numbered `detail` of the function `subject` were compared
    "other by own draws",
    "other share",  # a random mask keeps `subject` of its values, in eager `detail`; of so many draws (`by`)
    "effect",  # eager leaves `subject` in the program's state, the test `detail`
    "effect since",  # the same, and so it is with nothing compiled below `by`
    "warnings",  # eager issues it `subject` times, the test `detail` times
    "warnings since",  # the same, and so it is with nothing compiled below `by`
    "effects not judged",  # those named `subject`, for the reason `detail`
    _Effect,
    "float64 moved",  # so many bytes (`subject`) of float64 left the device for host memory, or a file
    "forward alone",  # `subject` cannot differentiate its outputs: `detail`
    "nan search ended",  # by `detail`
    "no graph",  # `subject` received none
    "layers not judged",  # of the compiler `subject`: `detail` is why
    "no kernels",  # `subject` has none that can be observed
    "not observed",  # the kernels: `detail`
    "not repeated",  # the failure, by the same compiled code
    "maybe uncompiled",  # with the backend `subject`, which compiles nothing, the outputs differ, if only by rounding
    "nothing bisected",
    "nothing returned",
    "parted",  # eager and compiled, at `subject`, by a question whether the program is compiled, at `detail`
    "parted draws",  # the same, and random numbers differ from there on
    "parted, alone",  # the same, and the compiled way cannot run without a compiler: `detail`
    "other draws",  # `subject` draws other random numbers than eager, as Dynamo's graphs do
    "partly observed",  # some kernels: `detail`
    "Python wrapper",  # the stages and kernels are of the program with one in place of its C++ wrapper
    "random as eager",  # `subject` was compiled to draw the numbers that eager draws
    "ranks apart",  # not all ranks came to the graph, or went on in it: `detail`
    "check lost",  # a stage returns a value where the one before raises `detail`
    "cannot run",  # a graph for a comparison: `detail`
    "own draws",  # the graph draws random numbers, which `subject` may draw otherwise
    "repeated",  # the output `subject` is the output `detail` again
    "search failed",  # `subject` cannot compile a part of the graph: `detail`
    "stages not judged",  # those of the frame or function `subject`, of which no row is shown; `detail` is why
    "tf32",  # by the setting `subject`
    "undeclared write",  # the op `subject` writes to its argument `detail`
    _Proof,
    _Reuse,
    _NotJudged,
    _NotCompared,
    _OfLaunch,
    _OfBisection,
    _OfTensor,
    _OfSteps,
]


class Remark(msgspec.Struct, frozen=True, omit_defaults=True):
    """One remark: names and messages, as its kind has them; `detail` may be other remarks."""

    kind: RemarkKind
    subject: str = ""
    detail: "tuple[Remark, ...] | str" = ""
    by: str = ""


class NoFloat64(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a comparison had no float64 side. `detail`: the side that failed, or the message; `on_cpu`: it ran there."""

    why: Literal["waiting", "tolerance", "rounding", "device", "reference", "not narrow", "draws", "failed", "not run"]
    detail: str = ""
    on_cpu: bool = False
