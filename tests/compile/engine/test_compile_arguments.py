"""What torch.compile refuses in plain Python, it refuses in a run too, whatever the target."""

from collections.abc import Callable

import pytest
import torch

from idbg.schema.runs import Run

Runner = Callable[..., Run]
BASE = "import torch\ndef f(x): return x.sin() + 1\n"
REFUSED = {
    "option": 'options={"no_such_option": True}',
    "type": 'options={"max_autotune": "yes"}',
    "mode": 'mode="no_such_mode"',
    "both": 'mode="max-autotune", options={"max_autotune": True}',
    "backend": 'backend="no_such_backend"',
}


@pytest.mark.parametrize("target", ["eager", "aot"])
@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_what_torch_refuses_fails_the_run_with_the_same_words(ran: Runner, arguments: str, target: str) -> None:
    text = f"{BASE}torch.compile(f, {arguments})(torch.ones(3))\n"
    with pytest.raises(Exception) as plain:  # noqa: PT011  # whichever torch raises: the run is held against it
        exec(text, {})
    failure = ran(text, backend=target).failure
    assert failure is not None
    assert failure.type == plain.type.__name__
    assert failure.message.startswith(str(plain.value)[:60])


def test_a_decorator_refuses_as_it_decorates(ran: Runner) -> None:
    failure = ran('import torch\n@torch.compile(options={"no_such_option": 1})\ndef f(x): return x\n').failure
    assert failure is not None and "no_such_option" in failure.message


def test_guards_that_the_program_filters_are_filtered_here_too(ran: Runner) -> None:
    options = 'options={"guard_filter_fn": lambda guards: [guard.guard_type != "TENSOR_MATCH" for guard in guards]}'
    calls = "f = torch.compile(f, dynamic=False, {})\nf(torch.ones(3))\nf(torch.ones(4))\n"
    assert len(ran(BASE + calls.format(""), backend="eager").frames) == 2
    torch._dynamo.reset()
    assert len(ran(BASE + calls.format(options), backend="eager").frames) == 1
