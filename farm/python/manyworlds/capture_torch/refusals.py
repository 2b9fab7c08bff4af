"""What has no place in a capture is refused by name, and TorchScript runs as the Python that it is."""

import torch

from .recorder import Unsupported


def refuse(name, why):
    def refused(*ignored, **also_ignored):
        raise Unsupported(f"{name}: {why}")
    return refused


class DataParallel(torch.nn.Module):
    """torch.nn.DataParallel, which on one GPU calls the module alone."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        devices = list(range(torch.cuda.device_count())) if device_ids is None else list(device_ids)
        if len(devices) > 1:
            raise Unsupported(f"torch.nn.DataParallel on {len(devices)} GPUs: a captured process has one GPU; DistributedDataParallel, or "
                              "--per-node 1, is captured")
        self.module, self.device_ids = module, devices

    def forward(self, *inputs, **kwargs):
        inputs, kwargs = torch.utils._pytree.tree_map(lambda one: one.cuda() if isinstance(one, torch.Tensor) else one, (inputs, kwargs))
        return self.module(*inputs, **kwargs)


def install(recorder, settings):
    """Puts all of this in the place of PyTorch's own."""
    def script(obj, *ignored, **also_ignored):
        recorder.note("torch.jit.script: operators run one by one, as Python has them; what its compiler fuses is not known")
        return obj

    torch.jit.script = script
    torch.nn.DataParallel = torch.nn.parallel.DataParallel = DataParallel
    unknown = "what ranks ask of each other follows from what they answer, and they are captured apart"
    import torch.distributed.rpc as rpc

    for name in ("init_rpc", "rpc_sync", "rpc_async", "remote"):
        setattr(rpc, name, refuse(f"torch.distributed.rpc.{name}", unknown))
    graphs = "graphs of CUDA are not captured: the same operators without a graph are"
    for name in ("CUDAGraph", "graph", "make_graphed_callables"):
        setattr(torch.cuda, name, refuse(f"torch.cuda.{name}", graphs))
