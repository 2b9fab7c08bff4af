"""A multilayer perceptron under DistributedDataParallel."""
import os

import torch
import torch.distributed as dist
from torch import nn

WIDTH, HIDDEN, CLASSES, BATCH = 256, 1000, 10, 32


def main():
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    if on_gpu:
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, CLASSES)).to(device)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[local_rank] if on_gpu else None, bucket_cap_mb=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        images, labels = torch.randn(BATCH, WIDTH).to(device), torch.randint(0, CLASSES, (BATCH,)).to(device)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
