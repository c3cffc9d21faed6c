"""The program's device of each tensor that is computed on the CPU, as its own device has no float64.

Random numbers are drawn on the program's device, so that they are the same.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor

from idbg.engine.compat.torch_types import tree_leaves
from idbg.engine.kerneldiff.tensors.float64_device import CPU, float64_device

_PLAIN_DROPOUT = ("cpu", "mps", "meta")
_PROGRAM_DEVICE = "_idbg_program_device"  # on a tensor of ours, where that is not `usual`


class DeviceMap:
    """Maps tensors to the program's devices. `usual` is that of tensors on the CPU of which nothing else is known: the
    device without float64 of most of the program's tensors, else the first one used.
    """

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        all_tensors = list(tensors)
        away = Counter(tensor.device for tensor in all_tensors if float64_device(tensor.device) != tensor.device)
        self.usual = away.most_common(1)[0][0] if away else CPU
        self._here = {id(tensor) for tensor in all_tensors if tensor.device == CPU}
        self._default = torch.get_default_device()

    @property
    def is_elsewhere(self) -> bool:
        """Whether some device's tensors are computed on the CPU."""
        return self.usual != CPU

    def moved(self, device: torch.device) -> torch.device:
        """The device on which float64 is computed for this one."""
        at = float64_device(device)
        if at != device and not self.is_elsewhere:
            self.usual = device
        return at

    def of(self, tensor: Tensor) -> torch.device:
        """The tensor's device in the program."""
        if tensor.device != CPU:
            return tensor.device
        return CPU if id(tensor) in self._here else cast("torch.device", getattr(tensor, _PROGRAM_DEVICE, self.usual))

    def of_result(self, leaves: Sequence[object]) -> torch.device:
        """The device of an op's result in the program, from its arguments' leaves."""
        named = next((leaf for leaf in leaves if isinstance(leaf, torch.device)), None)
        if named is not None:
            return named
        if not self.is_elsewhere:
            return self.usual
        devices = {self.of(leaf) for leaf in leaves if isinstance(leaf, Tensor)}
        if not devices:
            return self._default
        return next((device for device in devices if device != CPU), CPU)

    def mark(self, result: object, device: torch.device) -> None:
        """Record the program's device of these tensors."""
        if device == self.usual or not self.is_elsewhere:
            return
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.device == CPU:
                setattr(leaf, _PROGRAM_DEVICE, device)

    def dropped_out(self, value: Tensor, p: float, train: bool | None) -> Tensor | None:
        """Dropout by the op of the program's device, if that has one of its own: it draws other numbers."""
        if train and 0 < p < 1 and value.numel() and self.of(value).type not in _PLAIN_DROPOUT:
            return torch.native_dropout(value, p, train)[0]
        return None
