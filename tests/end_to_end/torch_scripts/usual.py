"""What scripts usually call besides: loaders, convolutions, attention, float16 with a scaler, foreach, events, memory, evaluation."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl", init_method="env://")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                                   nn.Conv2d(16, 32, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.encoder(self.image(x)[:, None, :].expand(-1, 4, -1).contiguous()).mean(1))


model = nn.parallel.DistributedDataParallel(Net().cuda(local_rank), device_ids=[local_rank], gradient_as_bucket_view=True)
data = TensorDataset(torch.randn(64, 3, 16, 16), torch.randint(0, 10, (64,)))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data), pin_memory=True, num_workers=1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
schedule, scaler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10), torch.cuda.amp.GradScaler()
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
for x, y in loader:
    x, y = x.cuda(local_rank, non_blocking=True), y.cuda(local_rank, non_blocking=True)
    start.record()
    with torch.cuda.amp.autocast(dtype=torch.float16):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    gathered, part = torch.empty(8, 4, device=x.device), torch.empty(2, 4, device="cuda")
    dist.all_gather_into_tensor(gathered, torch.ones(2, 4, device=x.device))
    dist.reduce_scatter_tensor(part, gathered)
    dist.all_to_all_single(torch.empty(4, 4, device="cuda"), torch.ones(4, 4).cuda())
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    schedule.step()
    end.record()
    torch.cuda.synchronize()
    print(f"{mean.item():.3f}", mean, start.elapsed_time(end), torch.cuda.max_memory_allocated(), schedule.get_last_lr())
model.eval()
with torch.no_grad():
    accuracy = (model(x).argmax(1) == y).float().mean().item()
dist.barrier()
everybodys = [None] * dist.get_world_size()
dist.all_gather_object(everybodys, accuracy)
torch.save(model.module.state_dict(), "never.pt")
dist.destroy_process_group()
