"""A GPT with tied embeddings under autocast: gpt.py LAYERS WIDTH HEADS LENGTH BATCH VOCABULARY [checkpoint]"""
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = map(int, sys.argv[1:7])
RECOMPUTE = sys.argv[7:] == ["checkpoint"]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool)), persistent=False)

    def forward(self, x):
        query, key, value = [one.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for one in self.qkv(self.first(x)).split(WIDTH, dim=2)]
        scores = (query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5).masked_fill(~self.mask, float("-inf"))
        mixed = nn.functional.dropout(scores.softmax(-1), 0.1) @ value
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.ModuleList([Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions(torch.arange(LENGTH, device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x) if RECOMPUTE else block(x)
        return nn.functional.cross_entropy(self.head(self.norm(x)).view(-1, VOCABULARY), labels.view(-1))


model = Gpt().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(2):
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)).cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(ids[:, :-1], ids[:, 1:].contiguous())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
