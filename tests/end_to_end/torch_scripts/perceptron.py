"""Two matrices and Adam on one GPU: the script whose memory has a closed form. perceptron.py BATCH"""
import sys

import torch
from torch import nn

BATCH = int(sys.argv[1])
WIDTH, HIDDEN, OUTPUT = 100, 300, 50

x = torch.randn(BATCH, WIDTH, device="cuda")
model = nn.Sequential(nn.Linear(WIDTH, HIDDEN, bias=False), nn.ReLU(), nn.Linear(HIDDEN, OUTPUT, bias=False)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
