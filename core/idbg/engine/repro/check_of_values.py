"""How does a script tell that a compiled result is wrong: further from float64 than eager is?"""

import re

from idbg.engine.repro.check_pieces import Checked, compiled, guarded, indented, quoted, toml_of, trains, under
from idbg.engine.repro.draft import Differs, Draft
from idbg.engine.repro.layout import laid_out

# where a program names a dtype, or makes tensors of its own, its arguments in float64 do not take all of it there
_NAMES_DTYPES = re.compile(
    r"float|half|dtype|type\(|\.to\(|zeros|ones|full|empty|tensor\(|arange|space|eye|one_hot|window|complex"
)
_RANDOM = re.compile(
    r"rand|dropout|bernoulli|multinomial|normal_|uniform_|exponential_|poisson|cauchy_|geometric_|rrelu"
)
_FLOAT64 = [
    "class Float64(TorchDispatchMode):  # each op computes in float64, whatever dtype the program names",
    "    def __torch_dispatch__(self, op, types, args=(), kwargs=None):",
    "        if torch.Tag.nondeterministic_seeded in op.tags or op is torch.ops.aten.view.dtype:",
    '            raise NotImplementedError(f"{op} is another in float64")',
    "        args, kwargs = tree_map(wide, (args, kwargs or {}))",
    "        return tree_map(wide, op(*args, **kwargs))",
]
_WIDE = [
    "def wide(value):",
    "    if isinstance(value, torch.Tensor):",
    "        return value.double() if value.is_floating_point() else value",
]
_WIDE_DTYPE = "    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value"
_OFF = [
    "def off(value, exact):",
    '    """The error over the RMS of what is exact, and where it is largest."""',
    "    value, exact = value.to(torch.complex128), exact.to(torch.complex128)",
    "    far = (value - exact).abs().masked_fill((value == exact) | (value.isnan() & exact.isnan()), 0)",
    "    far /= exact.abs().nan_to_num(0, 0).square().mean().sqrt() or 1",
    "    return far.square().mean().sqrt().item(), tuple(map(int, torch.unravel_index(far.argmax(), far.shape)))",
]
_NO_FLOAT64 = "eager is the reference, with the tolerances of torch.testing"


def of_values(draft: Draft, check: Differs) -> Checked:
    """A script that runs the program in eager, compiled and in float64, and says of each result how far it is off."""
    code = "\n".join(line for line in draft.statements if not line.lstrip().startswith("#"))
    random = bool(_RANDOM.search(code))
    modal = not random and bool(_NAMES_DTYPES.search(code) or draft.modes or draft.definitions)
    constants = [f"WRONG, K, LEAST = {quoted(check.wrong)}, {check.k:g}, {check.least:g}"]
    blocks = [
        _results(draft, "mode" if modal else "", casts=not random),
        _OFF,
        _wrong(random),
        _main(draft, random, modal),
    ]
    if not random:
        wide = [*_WIDE, _WIDE_DTYPE if modal else "    return value"]
        blocks[:0] = [_FLOAT64, wide] if modal else [wide]
    return Checked(blocks, [*toml_of(draft), *constants], guarded("sys.exit(main())"))


def of_what_runs(draft: Draft) -> Checked:
    """A script that says how far compiled and eager are apart."""
    main = [
        "def main():",
        "    eager = results(program)",
        *laid_out(f"compiled = results({compiled(draft)})", 1),
        "    for name, value in eager.items():",
        '        print(f"{name}: compiled is {off(compiled[name], value)[0]:.3g} of its RMS away from eager")',
        "    return 0",
    ]
    return Checked([_results(draft, "", casts=False), _OFF, main], toml_of(draft), guarded("sys.exit(main())"))


def _results(draft: Draft, mode: str, *, casts: bool) -> list[str]:
    """The function that runs one side."""
    own = (mode,) if mode else ()
    cast, around = ["wide=lambda value: value"] if casts else [], ["mode=nullcontext()"] if mode else []
    given = "[wide(value) for value in inputs()]" if casts else "inputs()"
    lines = ["torch.manual_seed(0)", f"given = {given}", *under((*draft.modes, *own), ["out = function(*given)"])]
    told, what = '{"output": out, "argument": given}', "its arguments after it"
    if trains(draft):
        tensor = "isinstance(leaf, torch.Tensor) and leaf.requires_grad"
        lines += [
            f"ends = [leaf for leaf in tree_leaves(out) if {tensor}]",
            "along = [torch.randn(end.shape, dtype=torch.float64).to(end) for end in ends]",
            f"wanted = [leaf for leaf in given if {tensor}]",
            *under(own, ["grads = torch.autograd.grad(ends, wanted, along, allow_unused=True)"]),
        ]
        told, what = '{"output": out, "argument": given, "gradient": grads}', f"{what}, their gradients"
    leaves = "for kind, held in told.items() for at, leaf in tree_leaves_with_path(held)"
    return [
        f"def results({', '.join(['function', *cast, *around])}):",
        f'    """What it returns, and {what}."""',
        *indented(lines),
        f"    told = {told}",
        f"    leaves = [(kind + keystr(at), leaf) {leaves}]",
        "    numbers = [(name, leaf) for name, leaf in leaves if isinstance(leaf, (torch.Tensor, int, float))]",
        "    return {name: torch.as_tensor(number).detach().cpu() for name, number in numbers}",
    ]


def _wrong(random: bool) -> list[str]:
    """The function that judges one result."""
    close = 'return "" if torch.allclose(value, eager, *default_tolerances(value), equal_nan=True) else "values"'
    head = [
        f"def wrong(name, value, eager{'' if random else ', exact'}):",
        "    if value is None or eager is None or (value.dtype, value.shape) != (eager.dtype, eager.shape):",
        '        print(f"{name}: it is not of the form that it has in eager")',
        '        return "form"',
        "    if not value.numel():",
        '        return ""',
    ]
    nan = ["    if (eager.isfinite() & ~value.isfinite()).any():", '        return "nan"']
    if random:
        said = 'print(f"{name}: error {error:.3g}; worst at {at}: {value[at]}, eager has {eager[at]}")'
        return [*head, "    error, at = off(value, eager)", f"    {said}", *nan, f"    {close}"]
    said = "{name}: error {error:.3g}, eager's own {own:.3g}; worst at {at}: {value[at]}, eager has {eager[at]}"
    return [
        *head,
        "    (error, at), (own, _) = (off(side, eager if exact is None else exact) for side in (value, eager))",
        f'    print(f"{said}")',
        *nan,
        "    if exact is None:",
        f"        {close}",
        '    return "values" if error > max(K * own, LEAST) else ""',
    ]


def _main(draft: Draft, random: bool, modal: bool) -> list[str]:
    judged = "compiled.get(name), eager.get(name)" + ("" if random else ", exact.get(name)")
    float64 = [
        "    try:",
        f"        exact = results(program, wide{', Float64()' if modal else ''})",
        "    except Exception as error:",
        "        exact = {}",
        f'        print(f"It does not run in float64 ({{error}}): {_NO_FLOAT64}")',
    ]
    if random:
        float64 = [f'    print("Random numbers are others in float64: {_NO_FLOAT64}")']
    return [
        "def main():",
        "    eager = results(program)",
        *laid_out(f"compiled = results({compiled(draft)})", 1),
        *float64,
        f'    found = {{wrong(name, {judged}) for name in {{**eager, **compiled}}}} - {{""}}',
        "    if found:",
        '        print(f"REPRODUCED {WRONG}" if WRONG in found else f"OTHER {\', \'.join(sorted(found))}")',
        "    return 0 if not found else 1 if WRONG in found else 2",
    ]
