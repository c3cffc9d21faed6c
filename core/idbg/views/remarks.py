"""Word the remarks on comparisons and bisections, why there was no float64 side, and how forms of outputs differ."""

from idbg.schema.diff import FormDiff, TensorDiff
from idbg.schema.remarks import NoFloat64, Remark, RemarkKind

_REMARKS: dict[RemarkKind, str] = {
    "all outputs": "gradients are those of all outputs at once, each weighted by fixed numbers: a loss outside of what "
    "is compiled is not known",
    "first calls": "of each function that the program compiles, some calls are compared, the first one in full (stages "
    "and launches are of that one): the others may differ",
    "later call": "{subject} is wrong, and call {by} was right; what changed since: {detail}",
    "later call not judged": "{subject} was not judged: {detail}",
    "later calls": "of {subject} these calls were compared: {detail}",
    "effect": "eager leaves {subject}, the compiled program {detail}",
    "effect since": "eager leaves {subject}, the compiled program {detail}: so does {by} alone",
    "warnings": "eager warns so often: {subject}, the compiled program: {detail}",
    "warnings since": "eager warns so often: {subject}, the compiled program: {detail}, as does {by} alone",
    "effects not judged": "what is left in {subject} is not judged: {detail}",
    "eager's effects vary": "eager itself leaves something else each time, or by another rounding",
    "only while compiling": "it differs at the first call alone, which compiles",
    "too much state": "it has more objects than are searched",
    "asks compiler": "the program itself asks whether it is compiled",
    "float64 moved": "{subject} of float64 moved to host memory, or to a file, while they waited for their next use",
    "forward alone": "the forward alone is compared: {subject} cannot differentiate its outputs: {detail}",
    "nan search ended": "the search for NaN in eager ended early: {detail}",
    "layers not judged": "the layers of {subject} could not be judged: {detail}",
    "no graph": "{subject} received no graph: the program ran uncompiled",
    "no kernels": "{subject} has no kernels that can be observed",
    "not observed": "the kernels could not be observed: {detail}",
    "not repeated": "the same compiled code gave wrong outputs first, and right ones when it ran again: they depend on "
    "timing, as where threads write to one place without waiting for each other; nothing is accused",
    "maybe uncompiled": "with the backend {subject}, which compiles nothing, the outputs differ too; a tolerance "
    "does not show whether by more than rounding: nothing is accused",
    "nothing bisected": "bisecting named no node: of the forward's values alone, those that nodes return, none is "
    "wrong beyond rounding. It does not see gradients, what is written in place, or a few wrong integers of many",
    "nothing returned": "the program returned nothing that could be compared",
    "parted": "eager and compiled part at {subject}, as the program asks whether it is compiled (at {detail}): its "
    "own choice, and no fault of the compiler's. It is compared with its compiled way, run without a compiler",
    "parted draws": "the compiled program draws other random numbers than eager: they part at {subject}, as the "
    "program asks whether it is compiled (at {detail}), its own choice and no fault of the compiler's. What the "
    "compiled way gives when it runs without a compiler, it gives too",
    "parted, alone": "eager and compiled part at {subject}, as the program asks whether it is compiled: its own "
    "choice, and no fault of the compiler's; that way cannot run without a compiler: {detail}",
    "other draws": "the compiled program draws other random numbers than eager (Dynamo's graphs, run with nothing "
    "compiled, draw them too, and give what {subject} gives; eager gives something else from another seed)",
    "partly observed": "some kernels could not be observed: {detail}",
    "Python wrapper": "the program has a C++ wrapper (cpp_wrapper): stages and kernels are those of the same program "
    "with a Python wrapper",
    "random as eager": "random operators are not judged: the numbers are compared with the ones that eager draws, and "
    "{subject} draws its own in a run without a comparison",
    "ranks apart": "the graph was not compared: {detail}",
    "check lost": "it returns a value where the stage before it raises: {detail}",
    "cannot run": "the graph could not be run again to compare it: {detail}",
    "own draws": "the graph draws random numbers, and {subject} may draw others than eager",
    "repeated": "{subject} is {detail} again: it is compared once",
    "search failed": "the search failed: {subject} cannot compile a part of the graph: {detail}",
    "stages not judged": "the stages of {subject} were not judged: {detail}",
    "tf32": "float32 may be computed in TF32 here ({subject} is tf32): its 10 bits of mantissa count as rounding",
    "undeclared write": "{subject} writes to its argument {detail}, which its schema does not declare "
    '(mutates_args=("{detail}",)): a compiler may move it, and what reads that argument differs',
    "right without it": "without it the results are right",
    "right before it": "the graph before it is right, and the one after it is not",
    "right anew": "compiled anew, and without CUDA graphs, the outputs are right",
    "right in Python": "with a Python wrapper in its place the outputs are right",
    "undeclared": "it writes to its argument {subject} and does not declare it (mutates_args); without that write "
    "eager's outputs are others too",
    "undeclared alias": "it returns its argument {subject} itself, or a part of it, and does not declare it; with a "
    "copy in its place eager's outputs are others too",
    "wrong uncompiled": "with nothing compiled below it the outputs are wrong",
    "so uncompiled": "with nothing compiled below it, it is so too",
    "never run in eager": "with nothing compiled below it the outputs are wrong, and eager never runs this line",
    "returned for it": "{subject} is returned in its place",
    "overwritten": "its memory was written to before it was returned",
    "not written": "no launch writes to {subject}",
    "reused": "the wrapper gives {subject} the memory of the graph's input {detail}, and the program's own tensor is "
    "overwritten",
    "reused, read": "the wrapper gives {subject} the memory of {detail}, which {by} reads after it was overwritten",
    "argument overwritten": "it writes to its argument {subject}, which it should only read, and {by} reads it after",
    "read late": "it is launched after {by}, which writes to {subject}, and the graph reads that before: it computes "
    "what it received",
    "other share": "dropout keeps {subject} of its values, {detail} in eager (n = {by})",
    "other by own draws": "with Inductor's own random operators, and the same random numbers, a stage computes "
    "something else than the one before it",
    "as dynamo": "what comes of it computes what Dynamo's graph does",
    "other draws than before": "it draws other random numbers than the stage before it",
    "after nonfinite": "a stage before it is wrong by NaN or an infinity",
    "after rounding": "a stage before it rounds by far more",
    "after alias": "a stage before it returns a result in other memory",
    "alias made": "the result lies in the memory of an argument, and in the stage before it in its own",
    "alias lost": "the result lies in its own memory, and in the stage before it in that of an argument",
    "alias elsewhere": "where an output comes to lie in other memory is not judged: it does in no graph, so below them "
    "(in the code that launches the kernels) or around them (in AOTAutograd's wrappers)",
    "not reported": "Inductor did not report it",
    "narrow": "{subject} has no float64, and ran in {detail}",
    "own way": "{subject} compiles it in its own way",
    "none observed": "{subject} has none that can be observed",
    "no launch": "no launch was observed",
    "random part": "{subject} draws random numbers, which are another compiler's",
    "from a file": "{subject} loaded it from a file, and the graph was not converted in this run",
    "no outputs": "{subject} cannot run it with values as extra outputs: {detail}",
    "no reference": "the conversion of {subject} cannot be told from its kernel: no reference implementation ran: "
    "{detail}",
    "reference too": "the compiler's reference implementation, without a device, is as wrong",
    "right op by op": "with nothing fused, each value an output, the results are right",
    "right by reference": "the compiler's reference implementation, without a device, is right",
    "right apart": "with this value as an extra output, the results are right",
    "model right before it": "the model before it computes right, and the one after it does not",
    "no node's value": "it leaves no value that is a node's",
    "no dispatch's value": "it returns no value that is known to be a node's",
    "lines lost": "no value of it that is known to be a node's is wrong: the edit left too little of what was imported",
    "no dispatch wrong": "compiled again with their values as results, no dispatch that holds a node's value is wrong",
    "not run as output": "it was not run, as the first wrong one was searched by halves",
    "node unknown": "its first bad node is not known: {detail}",
    "maker unknown": "what made it is not known: {detail}",
    "not saved": "its backward takes {subject}, which the forward does not return",
    "other arguments": "it takes {subject} arguments, and its compiled code {detail}",
    "not called": "its compiled code was not called, or could not be observed",
    "parts unknown": "its parts could not all be observed",
    "error": "{detail}",
    "step of a node": "it computes a step of {subject}, judged together with {detail}",
    "step of a bad node": "it computes a step of {subject}, judged together with {detail}, which is bad: either may be "
    "wrong",
    "bisected": "bisected, compiling {subject} parts of {detail}",
    "input overwritten": "its input {subject} was overwritten before, and the graph writes to it nowhere",
    "inside a node": "its buffers hold steps inside of a node, not a node's value",
    "not run": "it did not run",
    "input unknown": "its input {subject} could not be compared",
    "not run yet": "not compared: {subject} has not run yet",
    "side failed": "not compared: {subject} failed",
    "compared on": "compared on {subject}",
    "on one side": "it is {subject}",
    "types": "reference is {subject}, test is {detail}",
    "same tensor": "the same tensor as {subject}",
    "meta": "a tensor on the meta device has no values",
    "nested": "nested tensors are not compared: compare their values()",
    "freed": "its memory was freed, or it is inside of one of torch.func's transforms",
    "no values": "a {subject} has no values in memory",
    "several tensors": "a {subject} is not one tensor but {detail}: compare those",
    "packed": "torch cannot read single elements of {subject}",
    "no arithmetic": "torch cannot compute with {subject}",
    "eager varies": "eager itself gives something else each time, {subject}: it depends on more than its inputs (a "
    "clock, an address, threads), so the test's cannot be judged",
    "rounded": "within the rounding error of eager, measured by rounding its ops differently",
    "beside threshold": "rounding decides on which side of a threshold (a ReLU, a comparison) {subject} is: right on "
    "both, and what it changes is not in the RMSE that was judged",
    "zero but for rounding": "zero but for rounding: RMS {subject}",
    "other seed": "not comparable: of other random numbers than eager's",
    "eager far": "eager itself is {subject}: judged by tolerance",
    "no such float64": "judged by tolerance: float64 has no such tensor",
    "by eager's rounding": "eager's own rounding decides",
    "rounding unknown": "beyond the tolerances, and how far rounding moves it in eager could not be measured",
    "no more exact": "float64 is no more exact than this dtype",
    "float64 decides": "float64 decides",
    "nothing changes": "a step changes nothing: give the program a loss, or let it return its own training step (see "
    "the README)",
    "steps skipped": "the GradScaler left out every step, as gradients overflow: take more steps, or begin with a "
    "smaller scale",
    "without float64": "compared with eager: {detail}",
    "neither fails": "it does not fail under either",
    "both fail": "it fails under both alike",
    "fail otherwise": "it fails under both, but not alike: {detail}",
    "fails without": "it fails without any option: {detail}",
    "bad passes": "it does not fail at {subject}",
    "good fails": "it fails at {subject} as it does at {detail}",
    "good fails otherwise": "at {subject} it fails otherwise: {detail}",
}
_NO_FLOAT64 = {
    "waiting": "not run yet",
    "tolerance": "not run: the comparison is by tolerance",
    "rounding": "not run: the comparison is by eager's rounding",
    "device": "not run: the device failed",
    "reference": "not run: {detail} failed",
    "not narrow": "not run: the program has no floating numbers below float64",
    "draws": "the random numbers that the program draws differ from those in float64",
    "failed": "{detail}",
    "not run": "not run",
}


def sentence(remark: Remark | tuple[Remark, ...] | str) -> str:
    """The remark, or several, as a sentence; sessions of older versions have the sentence."""
    if isinstance(remark, str):
        return remark
    if isinstance(remark, tuple):
        return "; ".join(map(sentence, remark))
    return _REMARKS[remark.kind].format(subject=remark.subject, detail=sentence(remark.detail), by=remark.by)


def no_float64(missing: NoFloat64 | str) -> str:
    """Why there was no float64 side; "" where there was one."""
    if isinstance(missing, str):
        return missing
    return _NO_FLOAT64[missing.why].format(detail=missing.detail) + (" (it ran on the CPU)" if missing.on_cpu else "")


def tensor_note(diff: TensorDiff) -> str:
    """What differs beside the numbers, then the note on the tensor."""
    # of an older session the note has these sentences too
    return "; ".join(filter(None, (*(form_sentence(each) for each in diff.form if not each.said), sentence(diff.note))))


def form_sentence(form: FormDiff) -> str:
    """How the test's form differs from the reference's; sessions of older versions have the sentence."""
    return form.said or _form(form)


def _form(form: FormDiff) -> str:
    match form.kind:
        case "class" | "device":
            return f"its {form.kind} is {form.test}, in {form.side} {form.reference}"
        case "layout":
            return f"its layout is {form.test}, in {form.side} {form.reference}"
        case "stride":
            return f"its strides are {form.test}, in {form.side} {form.reference}"
        case "requires_grad" if form.failed:
            return f"it requires no gradient, in {form.side} it does: what trains through it stays as it is"
        case "requires_grad":
            return f"it requires a gradient, in {form.side} it does not"
    return _other_state(form) if form.failed else _other_output(form)


def _other_state(form: FormDiff) -> str:
    if not form.test:
        return (
            f"it is a copy, in {form.side} a view of {form.reference}: what is written to the one is not in the other"
        )
    if not form.reference:
        return f"it lies in the memory of {form.test}, in {form.side} in its own: what is written to it changes that"
    return f"it lies in the memory of {form.test}, in {form.side} in that of {form.reference}"


def _other_output(form: FormDiff) -> str:
    if not form.test:
        return f"it is a copy, in {form.side} it shares memory with {form.reference}"
    return f"it shares memory with {form.test}, in {form.side} with {form.reference or 'no other output'}"
