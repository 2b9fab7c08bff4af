"""DistributedDataParallel in its variants: reducers.py VARIANT. What a real run over gloo reduces and broadcasts is compared."""
import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

VARIANT = sys.argv[1] if len(sys.argv) > 1 else os.environ["VARIANT"]
WIDTH = 300


class Layers(nn.Module):
    """Six layers in another order than they are registered in, one of them twice, with a branch, and one that is never used."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(6)])
        self.never = nn.Linear(WIDTH, 200) if VARIANT in ("static", "unused") else None
        self.norm = nn.BatchNorm1d(WIDTH)

    def forward(self, x, branch):
        order = (3, 1, 0, 2, 5, 4, 1) if branch else (3, 1, 0)
        for i in order if VARIANT == "unused" else (3, 1, 0, 2, 5, 4, *([1] if VARIANT == "static" else [])):
            x = checkpoint(self.layers[i], x) if VARIANT in ("checkpoint", "static") else self.layers[i](x)
        return self.norm(x)


on_gpu = torch.cuda.is_available()
dist.init_process_group("nccl" if on_gpu else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
model = nn.parallel.DistributedDataParallel(Layers().to(device), device_ids=[device.index] if on_gpu else None, bucket_cap_mb=0.7,
                                            static_graph=VARIANT == "static", find_unused_parameters=VARIANT == "unused")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(4):
    for micro in range(2 if VARIANT == "accumulated" else 1):
        x = torch.randn(4, WIDTH, device=device, requires_grad=True)
        with model.no_sync() if VARIANT == "accumulated" and micro == 0 else contextlib.nullcontext():
            model(x, step % 2).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    for _ in range(3):
        model(torch.randn(4, WIDTH, device=device), 1)
