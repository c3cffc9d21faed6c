"""Records of the collectives that a rank of a distributed job began, as torch's flight recorder has them."""

import msgspec


class ProcessGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process group by torch's name ("0"), what it is for ("default_pg"), and its global ranks."""

    name: str
    about: str = ""
    ranks: tuple[int, ...] = ()


class Collective(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One collective, or with `peer_to_peer` one send or receive. `number` counts those of its group, from 1.

    `inputs` and `outputs` are tensors as torch prints them ("f32[4, 8]"); `file`, `line` and `function` are the user's.
    `began` is in seconds since the epoch; `peer` is the rank that a send goes to or a receive comes from.
    """

    group: str
    number: int
    op: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    function: str = ""
    began: float = 0.0
    peer_to_peer: bool = False
    peer: int | None = None
