"""Programs whose compile fails in each way that a compiler author meets, ten lines each."""

from dataclasses import dataclass
from textwrap import dedent, indent

OP = """
@torch.library.custom_op("mine::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by
@scale.register_fake
def _(x, by):
    FAKE
def net(x):
    y = torch.nn.functional.gelu(x) + 1
    z = scale(y, 2.0).tanh()
    return (z * z).sum(-1)
"""
FAKE = "return torch.empty_like(x)"
NET = """
def net(x):
    y = torch.nn.functional.gelu(x).exp() + 1
    z = torch.erfinv(torch.tanh(y))
    return (z.cos() * z).sum(-1)
"""
CALL = "torch.compile(net)(torch.randn(3, 17))\n"
LOWERING = """
from torch._inductor.lowering import lowerings, make_pointwise, register_lowering
from torch._inductor.virtualized import ops
@register_lowering(OF, type_promotion_kind=None)
def lowered(x, *rest):
    HOW
"""
SETTING = "import torch._inductor.config as config\nimport torch._functorch.config\n"
PASS = (
    SETTING
    + """
LIMIT = 2
def checked(graph):
    found = [node for node in graph.nodes if "erfinv" in str(node.target)]
    if found:
        raise ValueError(f"no unit for erfinv on this device ({len(found)} of {LIMIT})")
config.WHERE = HOW
"""
)
CLASS = (
    SETTING
    + """
from torch._inductor.custom_graph_pass import CustomGraphPass
class Checked(CustomGraphPass):
    def __init__(self, names):
        self.names = names
    def __call__(self, graph):
        for node in graph.nodes:
            assert not any(name in str(node.target) for name in self.names), "this op cannot be placed"
    def uuid(self):
        return None
config.post_grad_custom_pre_pass = Checked(["erfinv"])
"""
)


@dataclass(frozen=True)
class Failing:
    """A program's text, and how `repro` ends: with a script that `raises` so, or refused with words that `refuses`
    has. `wrong`: it does not raise, and its result is wrong. `dies`: its process does, by this signal.
    """

    text: str
    raises: str = ""
    refuses: str = ""
    wrong: bool = False
    dies: str = ""
    backend: str = "inductor"


def lowering(how: str, of: str = "torch.ops.aten.erfinv.default", head: str = "", net: str = NET) -> str:
    made = LOWERING.replace("OF", of).replace("HOW", indent(dedent(how), "    ").strip())
    return (net + head + made if "scale" in net else head + made + net) + CALL


def in_table(fills: str, raises: str = "raise LookupError('not placed')") -> str:
    return IN_TABLE.replace("RAISES", raises).replace("FILLS", fills) + NET + CALL


def by_pass(where: str, how: str = "checked", net: str = NET) -> str:
    return PASS.replace("WHERE", where).replace("HOW", how) + net + CALL


def op(fake: str = FAKE) -> str:
    return OP.replace("FAKE", fake)


SIZED = """
assert x.get_size()[-1] % 16 == 0, f"the last size {x.get_size()} is no multiple of 16"
return make_pointwise(ops.tanh)(x)
"""
IN_TABLE = """
from torch._inductor.lowering import lowerings
before = lowerings[torch.ops.aten.erfinv.default]
def lowered(x):
    if x.get_size():
        RAISES
    return before(x)
FILLS
"""
ENTRY = "lowerings[torch.ops.aten.erfinv.default] = lowered"
UPDATED = "def install():\n    lowerings.update({torch.ops.aten.erfinv.default: lowered})\ninstall()"
AS_COS = "return make_pointwise(ops.cos)(x)"
SCALE = "torch.ops.mine.scale.default"

FAILING: dict[str, Failing] = {
    "lowering raises": Failing(lowering("raise NotImplementedError('erfinv has no unit here')"), "NotImplementedError"),
    "lowering asserts": Failing(lowering(SIZED), "AssertionError"),
    "lowering of own op raises": Failing(
        lowering("raise RuntimeError('scale is not placed')", SCALE, net=op()), "RuntimeError"
    ),
    "lowering returns no buffer": Failing(lowering("return 'buffer'"), "AssertionError"),
    "lowering is wrong": Failing(lowering(AS_COS), wrong=True),
    "lowering dies": Failing(lowering("ctypes.string_at(0)", head="import ctypes"), dies="SIGSEGV"),
    "lowering put into the table raises": Failing(in_table(ENTRY), "LookupError"),
    "lowering put into the table by a function raises": Failing(in_table(UPDATED), "LookupError"),
    "lambda put into the table raises": Failing(
        in_table(ENTRY.replace("= lowered", "= lambda x: lowered(x)")), "LookupError"
    ),
    "what torch makes a lowering of raises": Failing(
        """
from torch._inductor.lowering import lowerings, make_pointwise
def fails(x):
    raise LookupError("not placed")
lowerings[torch.ops.aten.erfinv.default] = make_pointwise(fails)
"""
        + NET
        + CALL,
        "LookupError",
    ),
    "lowering put into the table dies": Failing(in_table(ENTRY, "__import__('ctypes').string_at(0)"), dies="SIGSEGV"),
    "pre-grad pass raises": Failing(by_pass("pre_grad_custom_pass"), "ValueError"),
    "joint pre pass raises": Failing(by_pass("joint_custom_pre_pass"), "ValueError"),
    "joint post pass raises": Failing(by_pass("joint_custom_post_pass"), "ValueError"),
    "post-grad pre pass raises": Failing(by_pass("post_grad_custom_pre_pass"), "ValueError"),
    "post-grad post pass raises": Failing(by_pass("post_grad_custom_post_pass"), "ValueError"),
    "a pass with values of its own asserts": Failing(CLASS + NET + CALL, "AssertionError"),
    "a pass of a function raises": Failing(
        SETTING
        + """
def made(name, limit):
    def checked(graph):
        for node in graph.nodes:
            if name in str(node.target):
                raise ValueError(f"more than {limit} of these cannot be placed")
    return checked
config.post_grad_custom_post_pass = made("erfinv", 0)
"""
        + NET
        + CALL,
        "ValueError",
    ),
    "a pattern's replacement raises": Failing(
        SETTING
        + """
from torch._inductor.pattern_matcher import CallFunction, KeywordArg, PatternMatcherPass, register_graph_pattern
patterns = PatternMatcherPass()
@register_graph_pattern(CallFunction(torch.ops.aten.erfinv.default, KeywordArg("x")), pass_dict=patterns)
def fused(match, x):
    raise KeyError("no fused form of erfinv")
config.post_grad_custom_pre_pass = patterns.apply
"""
        + NET
        + CALL,
        "KeyError",
    ),
    "post-grad pass is wrong": Failing(
        SETTING
        + """
def wrong(graph):
    for node in graph.nodes:
        if node.target is torch.ops.aten.cos.default:
            node.target = torch.ops.aten.sin.default
config.post_grad_custom_post_pass = wrong
"""
        + NET
        + CALL,
        wrong=True,
    ),
    "decomposition raises": Failing(
        """
from torch._inductor.decomposition import register_decomposition
@register_decomposition([torch.ops.aten.erfinv.default])
def decomposed(x):
    raise ValueError("no series for this range")
"""
        + NET
        + CALL,
        "ValueError",
    ),
    "decomposition is wrong": Failing(
        """
from torch._inductor.decomposition import register_decomposition
@register_decomposition([torch.ops.aten.erfinv.default])
def decomposed(x):
    return x * 0.5
"""
        + NET
        + CALL,
        wrong=True,
    ),
    "speedup_by_fusion raises": Failing(
        """
from torch._inductor.scheduler import Scheduler
def no_speedup(self, node1, node2):
    raise ValueError("this cost model knows no such pair")
Scheduler.speedup_by_fusion = no_speedup
"""
        + "def net(x):\n    return x.sin().sum(-1), x.cos().amax(-1)\n"
        + CALL,
        "ValueError",
    ),
    "pre-fusion pass raises": Failing(
        SETTING
        + """
def placed(nodes):
    raise ValueError(f"{len(nodes)} nodes, and no room in the scratchpad")
config._pre_fusion_custom_pass = placed
"""
        + NET
        + CALL,
        "ValueError",
    ),
    "post-fusion pass raises": Failing(
        SETTING
        + """
def placed(nodes):
    raise ValueError(f"{len(nodes)} nodes, and no room in the scratchpad")
config._post_fusion_custom_pass = placed
"""
        + NET
        + CALL,
        "ValueError",
    ),
    "partitioner raises": Failing(
        SETTING
        + """
from torch._inductor.custom_graph_pass import CustomPartitionerFn
class Mine(CustomPartitionerFn):
    def __call__(self, gm, joint_inputs, **kwargs):
        raise ValueError("the joint graph has no cut")
    def uuid(self):
        return None
config.custom_partitioner_fn = Mine()
"""
        + NET
        + "torch.compile(net)(torch.randn(3, 17, requires_grad=True))\n",
        "ValueError",
    ),
    "fake kernel raises": Failing(op("raise ValueError('no meta of scale')") + CALL, "ValueError"),
    "fake kernel is wrong": Failing(op("return x.new_empty(x.shape[0], 3)") + CALL, "AssertionError"),
    "own op without a fake": Failing(
        OP.partition("@scale.register_fake")[0] + "def net" + OP.partition("def net")[2] + CALL, "RuntimeError"
    ),
    "C++ written by a patched CppOverrides": Failing(
        """
from torch._inductor.codegen.cpp import CppOverrides, CppVecOverrides
def tanh(x):
    return f"unit::tanh({x})"
CppOverrides.tanh = staticmethod(tanh)
CppVecOverrides.tanh = staticmethod(tanh)
"""
        + NET
        + CALL,
        "CppCompileError",
    ),
    "C++ that does not compile": Failing(
        SETTING
        + "config.cpp.inject_relu_bug_TESTING_ONLY = 'compile_error'\n"
        + "torch.compile(lambda x: x.sin().relu() + 1)(torch.randn(3, 17))\n",
        "CppCompileError",
    ),
    "backend raises": Failing(
        """
from torch._dynamo import register_backend
@register_backend
def mine(gm, inputs):
    for node in gm.graph.nodes:
        if "erfinv" in str(node.target):
            raise NotImplementedError(f"{node.target} has no kernel")
    return gm.forward
"""
        + NET
        + "torch.compile(net, backend='mine')(torch.randn(3, 17))\n",
        "NotImplementedError",
        backend="mine",
    ),
    "a decomposition in the place of torch's raises": Failing(
        """
from torch._inductor.decomposition import decompositions, register_decomposition
decompositions.pop(torch.ops.aten.hardswish.default, None)
@register_decomposition([torch.ops.aten.hardswish.default])
def hard(x):
    if x.shape[-1] == 17:
        raise RuntimeError("hardswish does not fit rows of an odd size")
    return x * (x + 3).clamp(0, 6) / 6
def net(x):
    y = torch.nn.functional.hardswish(x.sin() + 1)
    return (y.exp() * x).sum(-1)
"""
        + CALL,
        "RuntimeError hardswish does not fit rows",
    ),
    "backend of AOTAutograd raises": Failing(
        """
from torch._dynamo.backends.common import aot_autograd
def compiled(gm, inputs):
    for node in gm.graph.nodes:
        assert "erfinv" not in str(node.target), f"{node.target} has no kernel"
    return gm.forward
mine = torch._dynamo.register_backend(aot_autograd(fw_compiler=compiled), name="mine_of_aot")
"""
        + NET
        + "torch.compile(net, backend='mine_of_aot')(torch.randn(3, 17))\n",
        "AssertionError",
        backend="mine_of_aot",
    ),
    "a break under fullgraph": Failing(
        "def net(x):\n    y = x.sin() * 2\n    print(y.sum())\n    return y.cos()\n"
        "torch.compile(net, fullgraph=True)(torch.randn(3, 17))\n",
        "Unsupported",
    ),
    "a branch that depends on data": Failing(
        "def net(x):\n    y = x.sin() * 2\n    if y.sum() > 0:\n        return y.cos()\n    return y\n"
        "torch.compile(net, fullgraph=True)(torch.randn(3, 17))\n",
        "Unsupported",
    ),
    "mark_dynamic is violated": Failing(
        "def net(x):\n    y = x.sin() * 2\n    return y.view(3, 17).cos()\n"
        "x = torch.randn(3, 17)\ntorch._dynamo.mark_dynamic(x, 0)\ntorch.compile(net)(x)\n",
        "ConstraintViolationError",
    ),
    "the recompile limit is hit": Failing(
        "import torch._dynamo.config\ntorch._dynamo.config.fail_on_recompile_limit_hit = True\n"
        "torch._dynamo.config.recompile_limit = 2\n"
        "def net(x, n):\n    return x.sin() * n\n"
        "compiled = torch.compile(net, backend='eager', dynamic=False)\nfor n in range(4):\n"
        "    compiled(torch.randn(3, 17), n)\n",
        "Unsupported",
    ),
    "the backward of an autograd.Function raises": Failing(
        """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return torch.ops.aten.erfinv(grad) * x
"""
        + LOWERING.replace("OF", "torch.ops.aten.erfinv.default").replace("HOW", "raise TypeError('no erfinv here')")
        + "def net(x):\n    return Twice.apply(x).sin().sum()\n"
        "torch.compile(net)(torch.randn(3, 17, requires_grad=True)).backward()\n",
        "TypeError",
    ),
    "an op that writes to its argument": Failing(
        """
@torch.library.custom_op("mine::fill", mutates_args=("out",))
def fill(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x)
def net(x):
    out = torch.empty_like(x)
    fill(x.sin(), out)
    return torch.erfinv(out) * 2
"""
        + LOWERING.replace("OF", "torch.ops.aten.erfinv.default").replace("HOW", "raise TypeError('no erfinv here')")
        + CALL,
        "TypeError",
    ),
    "an option that Inductor has not": Failing(
        NET + "torch.compile(net, options={'no_such_option': True})(torch.randn(3, 17))\n", refuses="no_such_option"
    ),
    "a backend that is not there": Failing(
        NET + "torch.compile(net, backend='no_such_backend')(torch.randn(3, 17))\n", raises="InvalidBackend"
    ),
    "the model raises": Failing(
        "def net(x):\n    if x.shape[0] != 4:\n        raise ValueError('four rows')\n    return x.sin()\n" + CALL,
        refuses="four rows",
    ),
    "the model's sizes do not fit": Failing(
        "def net(x):\n    return x.sin() @ x\n" + CALL, refuses="mul|reduction dim"
    ),
    "the program raises afterwards": Failing(
        NET + CALL.replace("torch.compile", "y = torch.compile") + "assert y.sum() > 1e9, 'mine'\n",
        refuses="mine",
        backend="aot_eager",
    ),
    "nothing fails": Failing(NET + CALL, refuses="did not fail", backend="aot_eager"),
}
