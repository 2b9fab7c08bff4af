"""A script that starts its processes itself, and whose rank 0 says and saves what the others need."""
import copy
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

SAVED = os.path.join(tempfile.gettempdir(), "manyworlds-never-written.pt")


def work(rank, world):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    said = [{"width": 96}] if rank == 0 else [None]
    dist.broadcast_object_list(said, src=0)
    model = nn.Linear(said[0]["width"], 8).to(rank)
    optimizer = torch.optim.Adam(model.parameters())
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    for step in range(2):
        x = torch.randn(16, said[0]["width"]).to(rank)
        nn.functional.one_hot(model(x).argmax(1), 8).type(torch.cuda.FloatTensor)
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, SAVED)
        dist.barrier()
        saved = torch.load(SAVED, map_location={"cuda:0": f"cuda:{rank}"})
        assert saved["step"] in (0, 1) and saved["model"]["module.weight"].is_cuda
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    assert not os.path.exists(SAVED)
    copy.deepcopy(model.module.weight.detach())
    everything = [torch.empty(5, device=rank) for _ in range(world)] if rank == 0 else None
    dist.gather(torch.ones(5, device=rank), everything, dst=0)
    dist.scatter(torch.empty(3, device=rank), [torch.ones(3, device=rank)] * world if rank == 0 else None, src=0)


if __name__ == "__main__":
    mp.spawn(work, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
