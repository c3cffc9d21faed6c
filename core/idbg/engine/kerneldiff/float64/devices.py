"""For which device does a tensor of the float64 side stand, where that device has no float64?

Random numbers are drawn there, so that they are the ones that the program draws.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from idbg.engine.kerneldiff.tensors.float64_device import CPU, float64_device

_PLAIN_DROPOUT = ("cpu", "mps", "meta")
_STANDS_FOR = "_idbg_stands_for"  # on a tensor of ours: its device in the program, where that is not the usual


class DeviceMap:
    """`usual` is the device for which a tensor on the CPU stands where nothing else is known of it: the one without
    float64 that most of the program's tensors are on, else the first that is met.
    """

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        given = list(tensors)
        away = Counter(tensor.device for tensor in given if float64_device(tensor.device) != tensor.device)
        self.usual = away.most_common(1)[0][0] if away else CPU
        self._here = {id(tensor) for tensor in given if tensor.device == CPU}
        self._default = torch.get_default_device()

    @property
    def is_elsewhere(self) -> bool:
        """Whether anything is computed on another device than in the program."""
        return self.usual != CPU

    def moved(self, device: torch.device) -> torch.device:
        """Where what the program asks for on this device is computed."""
        at = float64_device(device)
        if at != device and not self.is_elsewhere:
            self.usual = device
        return at

    def of(self, tensor: Tensor) -> torch.device:
        """The device that the tensor is on in the program."""
        if tensor.device != CPU:
            return tensor.device
        return CPU if id(tensor) in self._here else cast("torch.device", getattr(tensor, _STANDS_FOR, self.usual))

    def of_result(self, leaves: Sequence[object]) -> torch.device:
        """The device that an op's result is on in the program, by its arguments' leaves."""
        asked = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
        if asked:
            return asked[0]
        if not self.is_elsewhere:
            return self.usual
        devices = {self.of(leaf) for leaf in leaves if isinstance(leaf, Tensor)}
        if not devices:
            return self._default
        return next((device for device in devices if device != CPU), CPU)

    def mark(self, result: object, device: torch.device) -> None:
        """Note where these tensors of ours are in the program."""
        if device == self.usual or not self.is_elsewhere:
            return
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.device == CPU:
                setattr(leaf, _STANDS_FOR, device)

    def dropped_out(self, value: Tensor, p: float, train: bool | None) -> Tensor | None:
        """Dropout by the op that torch takes on the tensor's device, if it has one of its own there: other numbers are
        drawn by it.
        """
        if train and 0 < p < 1 and value.numel() and self.of(value).type not in _PLAIN_DROPOUT:
            return torch.native_dropout(value, p, train)[0]
        return None
