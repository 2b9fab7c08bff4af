#!/usr/bin/env python3
"""Measures training steps on one GPU of this machine, and writes a table that `manyworlds validate` and
`manyworlds calibrate` read; with --trace also a trace of the PyTorch profiler for each kind of software.

    script/measure_steps.py -o steps.csv                 # ten layouts, eager and compiled: some minutes
    script/measure_steps.py --list                       # what is measured, without a GPU

The model is torchtitan's Llama (pytorch/torchtitan @9dec370, models/llama/model.py) and its training step: blocks wrapped by
fully_shard with bf16 parameters and fp32 reductions, torch.compile of each block, attention by
scaled_dot_product_attention, cross entropy in fp32, clipping of gradients, fused AdamW. A time is the median of steps; memory
is the peak that PyTorch's allocator had in use. docs/formats.md describes the columns.
"""

import argparse
import csv
import gc
import math
import os
import statistics
import sys
import time

COLUMNS = ("id source year model layers hidden heads kv_heads ffn_hidden vocab seq_len gpu num_gpus gpus_per_node tp pp dp cp ep "
           "micro_batch global_batch recompute schedule zero_stage dtype measured_step_s measured_memory_gib notes "
           "tied_embeddings stack.norm_fusion stack.attention stack family").split()

# Llama 3.2 1B and 3B with an output matrix of their own, Llama 3 8B cut to six layers, Llama 2 of the width of 1.3B.
MODELS = {
    "Llama 1B": dict(layers=16, hidden=2048, heads=32, kv_heads=8, ffn_hidden=8192, vocab=128256),
    "Llama 3B": dict(layers=28, hidden=3072, heads=24, kv_heads=8, ffn_hidden=8192, vocab=128256),
    "Llama 8B, six layers": dict(layers=6, hidden=4096, heads=32, kv_heads=8, ffn_hidden=14336, vocab=128256),
    "Llama 1.3B": dict(layers=24, hidden=2048, heads=16, kv_heads=16, ffn_hidden=5504, vocab=32000),
}
# Model, tokens of a sample, samples of a step, recompute, compiled.
LAYOUTS = (
    ("Llama 1B", 4096, 2, "none", False), ("Llama 1B", 4096, 4, "full", False), ("Llama 1B", 8192, 1, "none", False),
    ("Llama 8B, six layers", 4096, 2, "none", False), ("Llama 8B, six layers", 8192, 2, "full", False),
    ("Llama 1.3B", 2048, 4, "none", False), ("Llama 1.3B", 2048, 16, "full", False), ("Llama 3B", 4096, 1, "full", False),
    ("Llama 1B", 4096, 2, "none", True), ("Llama 8B, six layers", 4096, 2, "none", True),
    ("Llama 1.3B", 2048, 4, "none", True), ("Llama 3B", 4096, 1, "full", True),
)
TRACED = (("Llama 1B", 4096, 2, "none"), ("Llama 8B, six layers", 4096, 2, "none"))
SECONDS_BEFORE_TRACE = 3  # of training without a pause, after which the clock is that of long training


def row_of(layout):
    """The row of a layout, without what is measured."""
    model, tokens, samples, recompute, compiled = layout
    shape = MODELS[model]
    software = "torchtitan" if compiled else "torchtitan-eager"
    name = "_".join(model.lower().replace(",", "").split())
    return {"id": f"{software}_{name}_{tokens}_{samples}_{recompute}", "model": model, **shape, "seq_len": tokens, "num_gpus": 1,
            "gpus_per_node": 1, "tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "micro_batch": samples, "global_batch": samples,
            "recompute": recompute, "schedule": "1f1b", "zero_stage": 3, "dtype": "bf16", "tied_embeddings": "false",
            "stack.norm_fusion": "true", "stack.attention": "cudnn", "stack": software}


def llama(torch, shape, tokens):
    """torchtitan's Llama of a shape, for samples of a length."""
    nn, functional = torch.nn, torch.nn.functional
    hidden, heads, kv_heads = shape["hidden"], shape["heads"], shape["kv_heads"]
    width = hidden // heads

    def rotate(q, k, angles):
        def one(x):
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * angles.view(1, tokens, 1, -1)).flatten(3).type_as(x)
        return one(q), one(k)

    def repeat(x):
        return x[:, :, :, None, :].expand(-1, -1, -1, heads // kv_heads, -1).reshape(x.shape[0], tokens, heads, width)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.wq, self.wo = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
            self.wk, self.wv = (nn.Linear(hidden, kv_heads * width, bias=False) for _ in range(2))

        def forward(self, x, angles):
            samples = x.shape[0]
            q = self.wq(x).view(samples, tokens, heads, width)
            k, v = (matrix(x).view(samples, tokens, kv_heads, width) for matrix in (self.wk, self.wv))
            q, k = rotate(q, k, angles)
            q, k, v = (one.transpose(1, 2) for one in (q, repeat(k), repeat(v)))
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.wo(out.transpose(1, 2).contiguous().view(samples, tokens, hidden))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.w1, self.w3 = (nn.Linear(hidden, shape["ffn_hidden"], bias=False) for _ in range(2))
            self.w2 = nn.Linear(shape["ffn_hidden"], hidden, bias=False)

        def forward(self, x):
            return self.w2(functional.silu(self.w1(x)) * self.w3(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.feed_forward = Attention(), FeedForward()
            self.attention_norm, self.ffn_norm = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)

        def forward(self, x, angles):
            h = x + self.attention(self.attention_norm(x), angles)
            return h + self.feed_forward(self.ffn_norm(h))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.tok_embeddings = nn.Embedding(shape["vocab"], hidden)
            self.layers = nn.ModuleList(Block() for _ in range(shape["layers"]))
            self.norm = nn.RMSNorm(hidden, eps=1e-5)
            self.output = nn.Linear(hidden, shape["vocab"], bias=False)
            steps = 1.0 / 500000 ** (torch.arange(0, width, 2).float() / width)
            angles = torch.outer(torch.arange(tokens).float(), steps)
            self.register_buffer("angles", torch.polar(torch.ones_like(angles), angles), persistent=False)

        def forward(self, x):
            x = self.tok_embeddings(x)
            for layer in self.layers:
                x = layer(x, self.angles)
            return self.output(self.norm(x))

    return Llama()


def prepared(torch, model, layout):
    """The model as torchtitan prepares it: recomputation, then compilation, then FSDP."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    _, _, _, recompute, compiled = layout
    for name, block in list(model.layers.named_children()):
        if recompute == "full":
            block = checkpoint_wrapper(block, preserve_rng_state=False)
        if compiled:
            block = torch.compile(block, fullgraph=True)
        model.layers.register_module(name, block)
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for number, block in enumerate(model.layers):
        fully_shard(block, mp_policy=precision, reshard_after_forward=number < len(model.layers) - 1)
    fully_shard(model, mp_policy=precision)
    return model


class Training:
    """A model that trains on random tokens."""

    def __init__(self, torch, layout):
        name, tokens, samples, _, compiled = layout
        self.torch, shape = torch, MODELS[name]
        with torch.device("cuda"):
            self.model = prepared(torch, llama(torch, shape, tokens), layout)
            self.inputs = torch.randint(shape["vocab"], (samples, tokens))
            self.labels = torch.randint(shape["vocab"], (samples, tokens))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        def loss(predicted, labels):
            return torch.nn.functional.cross_entropy(predicted.flatten(0, 1).float(), labels.flatten(0, 1))
        self.loss = torch.compile(loss) if compiled else loss

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(self.inputs), self.labels)
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()
        return loss


def attention_backends(torch):
    """torchtitan's order of attention kernels."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION], set_priority=True)


def measure(torch, layout, steps, trace):
    """Median seconds of a step, and the peak of memory in GiB."""
    torch.cuda.reset_peak_memory_stats()
    with attention_backends(torch):
        training = Training(torch, layout)
        for _ in range(3):
            training.step()
        torch.cuda.synchronize()
        seconds = []
        for _ in range(steps):
            begin = time.perf_counter()
            training.step()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
        memory = torch.cuda.max_memory_allocated() / 2**30
        if trace:
            write_trace(torch, training, trace, math.ceil(SECONDS_BEFORE_TRACE / min(seconds)))
    return statistics.median(seconds), memory


def write_trace(torch, training, path, steps_before):
    """Writes a step's trace, right after others."""
    from torch.profiler import ProfilerActivity, profile, schedule
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 schedule=schedule(wait=0, warmup=steps_before, active=1, repeat=1),
                 on_trace_ready=lambda profiler: profiler.export_chrome_trace(path)) as profiler:
        for _ in range(steps_before + 1):
            training.step()
            torch.cuda.synchronize()
            profiler.step()


def measured(torch, given):
    """The rows with what was measured, one after the other. A layout that does not run is named and left out."""
    gpu = torch.cuda.get_device_properties(0).name
    source = f"script/measure_steps.py, PyTorch {torch.__version__}"
    for layout in LAYOUTS:
        row = {**row_of(layout), "source": source, "year": time.strftime("%Y"), "gpu": gpu, "family": f"measured {gpu}"}
        trace = f"{given.trace}/{row['id']}.json.gz" if given.trace and layout[:-1] in TRACED else None
        try:
            seconds, memory = measure(torch, layout, given.steps, trace)
            yield {**row, "measured_step_s": f"{seconds:.6f}", "measured_memory_gib": f"{memory:.3f}"}
        except (RuntimeError, AttributeError, TypeError, NotImplementedError, ImportError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            print(f"measure_steps.py: {row['id']} left out: {reason}", file=sys.stderr, flush=True)
        torch._dynamo.reset()
        gc.collect()  # FSDP's modules refer to each other
        torch.cuda.empty_cache()


def begin(torch):
    """One rank, which is all of the process group that FSDP wants."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", metavar="FILE.csv", help="the table to write; default: to the terminal")
    parser.add_argument("--steps", type=int, default=10, help="a time is the median of so many steps (default: 10)")
    parser.add_argument("--trace", metavar="FOLDER", help="write a trace of one layout, eager and compiled, to this folder")
    parser.add_argument("--list", action="store_true", help="only write the layouts, with empty times")
    given = parser.parse_args()
    if given.steps < 1:
        parser.error("--steps must be at least 1")
    if given.list:
        rows = (row_of(layout) for layout in LAYOUTS)
    else:
        from measure_kernels import torch_with_gpu
        torch = torch_with_gpu()
        begin(torch)
        rows = measured(torch, given)
    with open(given.output, "w", encoding="utf-8", newline="") if given.output else sys.stdout as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main()
