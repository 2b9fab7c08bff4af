"""A tensor-parallel MLP with plain collectives, as in Megatron-LM, sequence-parallel between its layers, and data-parallel groups."""
import os

import torch
import torch.distributed as dist
from torch import nn

WIDTH, HIDDEN, BATCH, LAYERS = 64, 256, 8, 2


class Copy(torch.autograd.Function):
    """The same forward, a sum of gradients backward: f of Megatron-LM."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class Sum(torch.autograd.Function):
    """A sum forward, the same backward: g of Megatron-LM."""

    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        work = dist.all_reduce(x, group=group, async_op=True)
        work.wait()
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Layer(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.group = group
        self.up = nn.Linear(WIDTH, HIDDEN // dist.get_world_size(group))
        self.down = nn.Linear(HIDDEN // dist.get_world_size(group), WIDTH, bias=False)

    def forward(self, x):
        return x + Sum.apply(self.down(torch.relu(self.up(Copy.apply(x, self.group)))), self.group)


def main():
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = "cuda" if on_gpu else "cpu"
    tensor = [dist.new_group([first, first + 1]) for first in range(0, world, 2)][rank // 2]
    data = [dist.new_group(range(first, world, 2)) for first in range(2)][rank % 2]
    model = nn.Sequential(*[Layer(tensor) for _ in range(LAYERS)]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.randn(BATCH, WIDTH, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=data)
        gathered = [torch.empty(1, device=device) for _ in range(2)]
        dist.all_gather(gathered, loss.detach().reshape(1), group=tensor)
        dist.broadcast(gathered[0], rank // 2 * 2, group=tensor)
        optimizer.step()


if __name__ == "__main__":
    main()
