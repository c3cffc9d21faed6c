"""Wrap functions of other compilers' packages for as long as something observes them."""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

Native = Any
"""An object of another compiler's package, which idbg does not import before the program does."""

Function = Callable[..., Native]
"""A function of such a package."""

Wrapper = Callable[..., Native]
"""Called in place of a Function: with it, and with the arguments of the call."""


@contextmanager
def wrapped(wrappers: Mapping[str, Wrapper]) -> Iterator[list[str]]:
    """While it lasts, each function, named as "package.module:Class.method", is called through its Wrapper. Yields a
    list that collects problems: the functions that the installed version lacks, and errors of wrappers, which never
    reach the program.
    """
    problems: list[str] = []
    with ExitStack() as stack:
        for name, wrapper in wrappers.items():
            try:
                stack.callback(_installed(name, wrapper, problems))
            except (AttributeError, ImportError, TypeError) as error:
                problems.append(f"{name.replace(':', '.')} cannot be observed ({error})")
        yield problems


def _installed(name: str, wrapper: Wrapper, problems: list[str]) -> Callable[[], None]:
    """Install the wrapper. Returns what removes it."""
    module, _, path = name.partition(":")
    owner: Native = importlib.import_module(module)
    *classes, attribute = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    held = inspect.getattr_static(owner, attribute)
    is_static = isinstance(held, staticmethod)
    observed = _observed(name, held.__func__ if is_static else held, wrapper, problems)
    setattr(owner, attribute, staticmethod(observed) if is_static else observed)
    return functools.partial(setattr, owner, attribute, held)


def _observed(name: str, original: Function, wrapper: Wrapper, problems: list[str]) -> Function:
    @functools.wraps(original)
    def observed(*args: Native, **kwargs: Native) -> Native:
        results: list[Native] = []
        errors: list[Exception] = []

        def call(*args: Native, **kwargs: Native) -> Native:
            try:
                results.append(original(*args, **kwargs))
            except Exception as error:  # the compiler's or the program's: noted, so that it is not the wrapper's
                errors.append(error)
                raise
            return results[-1]

        try:
            return wrapper(call, *args, **kwargs)
        except Exception as error:  # a wrapper only observes: what it raises itself must not end the compile
            if any(error is each for each in errors):
                raise
            problems.append(f"{name.replace(':', '.')} was not observed: {type(error).__name__}: {error}")
        if errors:
            raise errors[-1]
        return results[-1] if results else original(*args, **kwargs)

    return observed
