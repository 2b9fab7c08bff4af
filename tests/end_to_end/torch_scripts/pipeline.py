"""Two stages of a pipeline: activations and their gradients go between neighbours, in one batch where they cross."""
import os

import torch
import torch.distributed as dist
from torch import nn

WIDTH, BATCH, MICRO_BATCHES = 128, 8, 4


def exchange(send, receive, peer):
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, send, peer), dist.P2POp(dist.irecv, receive, peer)]):
        work.wait()


def main():
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, half = dist.get_rank(), dist.get_world_size() // 2
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = "cuda" if on_gpu else "cpu"
    is_first, peer = rank < half, rank + half if rank < half else rank - half
    replicas = [dist.new_group(range(stage * half, (stage + 1) * half)) for stage in range(2)]
    stage = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)).to(device)
    optimizer = torch.optim.SGD(stage.parameters(), lr=1e-3, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        for _ in range(MICRO_BATCHES):
            if is_first:
                result = stage(torch.randn(BATCH, WIDTH, device=device))
                gradient = torch.empty(BATCH, WIDTH, device=device)
                dist.send(result.detach(), peer)
                dist.recv(gradient, peer)
                result.backward(gradient)
            else:
                source = torch.empty(BATCH, WIDTH, device=device, requires_grad=True)
                dist.recv(source.detach(), peer)
                stage(source).square().mean().backward()
                dist.send(source.grad, peer)
        for parameter in stage.parameters():
            dist.all_reduce(parameter.grad, group=replicas[0 if is_first else 1])
        # Neighbours tell each other what they are at, both ways at once.
        mine = torch.ones(4, device=device)
        theirs = torch.empty(4, device=device)
        exchange(mine, theirs, peer)
        optimizer.step()


if __name__ == "__main__":
    main()
