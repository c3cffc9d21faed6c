"""How does what a target says beside Inductor's options hold for a program: stance, settings, sources, caches?"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from idbg.config.options import INDUCTOR
from idbg.engine.compat import cold, settings
from idbg.schema.programs import OptionValue, Target

Again = Callable[[], None]
"""To be called where the program may have set something itself meanwhile, before it compiles."""


@contextmanager
def in_force(target: Target, tell: Callable[[str], None]) -> Iterator[Again]:
    """While it lasts, all of it holds, whatever the program sets before it compiles; then torch is as it would be
    without us. `tell` hears at the end of what did not hold.
    """
    cold.forget_last()
    held = settings.Held(_values(target))
    with ExitStack() as stack:
        if target.cold:
            stack.enter_context(cold.fresh_caches())
        if target.stance:
            stack.enter_context(settings.stance(target.stance))
        stack.callback(held.put_back)
        held.set()
        try:
            yield held.set
        finally:
            for name, value in held.lost().items():
                tell(f"{name} was {value!r} at the end, not as asked: the program or the environment sets it")


def _values(target: Target) -> dict[str, OptionValue]:
    sources = {"compiler.dynamic_sources": ",".join(target.dynamic_sources)} if target.dynamic_sources else {}
    early = {f"inductor.{name}": target.options[name] for name in settings.READ_BY_DYNAMO if name in target.options}
    return {**target.settings, **sources, **(early if target.options_for == INDUCTOR else {})}
