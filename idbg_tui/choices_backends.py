"""Which backends can be chosen? Ours, and those of other packages; of a broken one, what is wrong with it."""

from idbg import plugins
from idbg.schema.events import KnownBackend, WorkerStarted

OURS = (
    KnownBackend("aot", "AOTAutograd: rules on forward and backward, Inductor's code"),
    KnownBackend("mock", "rules on the Dynamo and ATen graphs, run eagerly: no kernels, quick"),
    KnownBackend("inductor", "plain torch.compile, only captured"),
    KnownBackend("eager", "Dynamo only: graph breaks, no ATen graphs"),
)


def choices(worker: WorkerStarted | None, current: str) -> list[KnownBackend]:
    """Ours first, then what the worker found, and `current`. Before it is up, other packages' by their names alone:
    to import them is to import torch.
    """
    unread = tuple(KnownBackend(name, "of another package") for name in plugins.names("idbg.backends"))
    others = (worker.backends if worker else ()) or unread
    found = {backend.name: backend for backend in (*others, *OURS)}
    found.setdefault(current, KnownBackend(current, "as the command line said"))
    first = [backend.name for backend in OURS]
    return [found.pop(name) for name in first] + list(found.values())
