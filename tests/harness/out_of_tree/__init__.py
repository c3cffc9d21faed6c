"""An Inductor backend for a device that torch does not know, as a package of others has it.

`install` builds the device (no_float64/device.cpp: PrivateUse1 in the CPU's memory) and registers a scheduling and a
wrapper class for it. Its kernels are no text in the usual place, but `NAME = async_compile.loops('NAME', [Loop(...)])`,
as torch-spyre's `async_compile.sdsc` and torch_npu's `async_compile.import_fx` have them.
"""

from pathlib import Path

from tests.harness.no_float64.compared import DEVICE, build


def install(folder: Path) -> str:
    """Build the device in this folder, load it into this process and compile for it; its name."""
    build(folder)
    from torch._dynamo.device_interface import CpuInterface, register_interface_for_device
    from torch._inductor import config
    from torch._inductor.codegen.common import register_backend_for_device, register_device_op_overrides
    from torch._inductor.codegen.cpu_device_op_overrides import CpuDeviceOpOverrides

    from tests.harness.out_of_tree.codegen import LoopScheduling, LoopWrapper

    register_interface_for_device(DEVICE, CpuInterface)
    register_backend_for_device(DEVICE, LoopScheduling, LoopWrapper)
    register_device_op_overrides(DEVICE, CpuDeviceOpOverrides())
    if hasattr(config, "loop_reindexing_after_fusion"):  # torch 2.15 expects a GPU's loops of any device but the CPU
        config.loop_reindexing_after_fusion = False
    return DEVICE
