"""Write the check that a compiled result is wrong: further from float64 than eager is."""

import re

import torch

from idbg.engine.compat.torch_types import OpOverload
from idbg.engine.repro.check_pieces import CheckCode, compiled, guarded, indented, toml_of, trains, under
from idbg.engine.repro.draft import Differs, Draft
from idbg.engine.repro.layout import laid_out, quoted

# where a program names a dtype, or makes tensors of its own, its arguments in float64 do not take all of it there
_NAMES_DTYPES = re.compile(
    r"float|half|dtype|type\(|\.to\(|zeros|ones|full|empty|tensor\(|arange|space|eye|one_hot|window|complex|convert"
)
# what is another program in float64: random numbers, and bits that are read as another dtype's
_RANDOM = re.compile(
    r"rand|dropout|bernoulli|multinomial|normal_|uniform_|exponential_|poisson|cauchy_|geometric_|rrelu"
)
_BITS = re.compile(r"\.view\(torch\.|view\.dtype")
_OP = re.compile(r"torch\.ops\.(\w+)\.(\w+)\.(\w+)\(")
_FLOAT64 = [
    "class Float64(TorchDispatchMode):  # each op computes in float64, whatever dtype the program names",
    "    def __torch_dispatch__(self, op, types, args=(), kw=None):",
    "        args, kw = tree_map_only(torch.dtype, lambda d: torch.float64 if d.is_floating_point else d, "
    "(args, kw or {}))",
    "        return tree_map_only(torch.Tensor, lambda x: x.double() if x.is_floating_point() else x, op(*args, **kw))",
]
_LOST = [
    "    one, *others = (side.to(torch.complex128) for side in (value, eager, exact.to(value.dtype)))",
    "    lost = ~eager.isfinite()",
    "    for other in others:",
    "        lost &= (one != other) & ((one == one) | (other == other))",
    "    if lost.any():",
    '        return "lost"',
]
_CAST = "tree_map_only(torch.Tensor, lambda x: x.double() if exact and x.is_floating_point() else x, inputs())"


def of_values(draft: Draft, check: Differs) -> CheckCode:
    """A script that runs the program in eager, compiled and in float64, and says of each result how far it is off."""
    code = "\n".join([*(line for line in draft.statements if not line.lstrip().startswith("#")), *draft.definitions])
    exact = not (_is_another_in_float64(code) or _has_arrays(draft))
    modal = exact and bool(_NAMES_DTYPES.search(code) or draft.modes or draft.definitions)
    why = "# where it does not run in float64, eager is the reference"
    sides = [
        "eager = results(program)",
        *laid_out(f"compiled = results({compiled(draft)})"),
        f"exact = eager  {why if exact else '# in float64 it is another program (random numbers, bits)'}",
        *(["with suppress(Exception):", "    exact = results(program, exact=True)"] if exact else []),
        "found = [wrong(name, compiled.get(name), eager.get(name), exact.get(name)) for name in {**eager, **compiled}]",
    ]
    ending = [
        "try:",
        *indented(sides),
        "except Exception as error:",
        "    traceback.print_exc()",
        '    error = getattr(error, "inner_exception", error)',
        '    found = [f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"]',
        'print(f"REPRODUCED {WRONG}" if WRONG in found else f"OTHER {max(found)}" if any(found) else "It is right")',
        "sys.exit(1 if WRONG in found else 2 if any(found) else 0)",
    ]
    blocks = [
        *([_FLOAT64] if modal else []),
        _results(draft, exact=exact, modal=modal),
        _wrong(lost=check.wrong == "lost"),
    ]
    constants = [*_constants(draft), f"WRONG, K, LEAST = {quoted(check.wrong)}, {check.k:g}, {check.least:g}"]
    return CheckCode(blocks, constants, indented(ending))


def of_what_runs(draft: Draft) -> CheckCode:
    """A script that says how far compiled and eager are apart."""
    main = [
        "def main():",
        "    eager = results(program)",
        *laid_out(f"compiled = results({compiled(draft)})", 1),
        "    for name, value in eager.items():",
        "        far, size = (compiled[name].to(torch.complex128) - value).norm(), value.to(torch.complex128).norm()",
        '        print(f"{name}: compiled is {far / (size or 1):.3g} of its size away from eager")',
        "    return 0",
    ]
    return CheckCode([_results(draft, exact=False, modal=False), main], _constants(draft), guarded("sys.exit(main())"))


def _constants(draft: Draft) -> list[str]:
    return [*toml_of(draft), *(["NUMBERS = (torch.Tensor, numpy.ndarray, int, float)"] if _has_arrays(draft) else [])]


def _has_arrays(draft: Draft) -> bool:
    return any(argument.is_array for argument in draft.arguments)


def _is_another_in_float64(code: str) -> bool:
    if _RANDOM.search(code) or _BITS.search(code):
        return True
    named = [
        getattr(getattr(getattr(torch.ops, space), name, None), part, None) for space, name, part in _OP.findall(code)
    ]
    return any(torch.Tag.nondeterministic_seeded in op.tags for op in named if isinstance(op, OpOverload))


def _results(draft: Draft, *, exact: bool, modal: bool) -> list[str]:
    """The function that runs one side."""
    seed = ["torch.manual_seed(0)"] if trains(draft) or not exact or draft.definitions else []
    given = f"given = {_CAST if exact else 'inputs()'}"
    own = ["Float64() if exact else nullcontext()"] if modal else []
    lines = [*seed, given, *under((*draft.modes, *own), ["out = function(*given)"])]
    leaves = '{"output": out, "argument": given}'
    if trains(draft):
        wanted = "[x for x in tree_leaves(side) if torch.is_tensor(x) and x.requires_grad]"
        along = "[torch.randn(x.shape).to(x) for x in ends]"
        lines += [
            f"ends, wanted = ({wanted} for side in (out, given))",
            *under(own, [f"grads = torch.autograd.grad(ends, wanted, {along}, allow_unused=True)"]),
        ]
        leaves = '{"output": out, "argument": given, "gradient": grads}'
    numbers = "NUMBERS" if _has_arrays(draft) else "(torch.Tensor, int, float)"
    return [
        f"def results(function{', exact=False' if exact else ''}):",
        *indented(lines),
        f"    flat = tree_leaves_with_path({leaves})",
        f"    flat = [(keystr(at), torch.as_tensor(leaf)) for at, leaf in flat if isinstance(leaf, {numbers})]",
        "    return {name: value.detach().cpu() for name, value in flat if value.numel()}",
    ]


def _wrong(*, lost: bool) -> list[str]:
    """The function that judges one result; with `lost`, also whether it has the NaN and infinities of eager."""
    wide = "side.to(torch.complex128).masked_fill(~eager.isfinite(), 0)"
    line = "{name}: error {error:.2g} (limit {limit:.2g}, eager {own:.2g}), {value[at]} for {eager[at]} at {at}"
    return [
        "def wrong(name, value, eager, exact):",
        "    if value is None or eager is None or (value.dtype, value.shape) != (eager.dtype, eager.shape):",
        '        return "form"',
        f"    test, own, right = ({wide} for side in (value, eager, exact))",
        "    error, own = ((side - right).norm().item() / (right.norm().item() or 1) for side in (test, own))",
        "    limit = default_tolerances(value)[0] if exact is eager else max(K * own, LEAST)",
        "    at = tuple(map(int, torch.unravel_index((test - right).abs().argmax(), value.shape)))",
        '    if error > limit or "output" in name:',
        f'        print(f"{line}")',
        *(_LOST if lost else []),
        '    return "nan" if (eager.isfinite() & ~value.isfinite()).any() else "values" if error > limit else ""',
    ]
