#!/usr/bin/env python3
"""Measures kernels of this machine's GPU with PyTorch, and writes a table that `manyworlds calibrate` and
`manyworlds validate` read, and that `cluster.gpu.measured_kernels` takes.

    script/measure_kernels.py -o kernels.csv            # GEMMs, fused attention, copies: some minutes
    script/measure_kernels.py --list                    # the shapes, without a GPU

A time is the median over repeats of launches one after the other, each on operands that are not in the cache; it contains
the launch. docs/formats.md describes the columns.
"""

import argparse
import csv
import statistics
import sys

COLUMNS = "device level name pass kind dtype m n k batch bytes flops time_us source".split()
ELEMENT_BYTES = {"bf16": 2, "fp8": 1, "fp32": 4}

# GEMMs of training: tokens by the widths of layers from 1B to 400B, whole and cut for tensor parallelism; a few that are
# narrow or short, which tell the memory's rate and the fixed costs.
GEMM_TOKENS = (1024, 4096, 8192, 16384)
GEMM_WEIGHTS = ((2048, 2048), (8192, 2048), (4096, 4096), (14336, 4096), (4096, 14336), (1024, 8192), (7168, 8192),
                (8192, 8192), (8192, 3584))  # n, k
GEMM_OTHERS = ((256, 4096, 4096), (512, 512, 512), (1024, 1024, 1024), (16384, 64, 4096), (128, 16384, 8192),
               (4096, 4096, 128), (16384, 16384, 16384))
# Attention: samples, tokens, heads, heads of keys and values, width of a head; causal.
ATTENTION = ((8, 1024, 32, 32, 128), (4, 2048, 32, 8, 128), (2, 4096, 32, 8, 128), (1, 8192, 32, 8, 128),
             (1, 16384, 16, 16, 128), (4, 2048, 16, 16, 64), (2, 4096, 64, 8, 128))
COPY_MIB = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # read and written together


def gemm(m, n, k, dtype="bf16"):
    """[m,k] x [k,n] in `dtype`, with a result in 16 bits."""
    return {"name": "gemm", "kind": "gemm", "dtype": dtype, "m": m, "n": n, "k": k, "batch": 1,
            "bytes": ELEMENT_BYTES[dtype] * (m * k + k * n) + 2 * m * n, "flops": 2 * m * n * k}


def attention(kind, samples, tokens, heads, kv_heads, width):
    """Causal attention; the backward pass reads and writes twice as much, and has five products where two are forward."""
    backward = kind.endswith("backward")
    elements = samples * tokens * (heads + kv_heads) * 2 * width
    pairs = tokens * tokens // 2
    return {"name": "attention", "kind": kind, "dtype": "bf16", "m": tokens, "n": tokens, "k": width,
            "batch": samples * heads, "bytes": 2 * elements * (2 if backward else 1),
            "flops": (10 if backward else 4) * samples * heads * pairs * width, "kv_heads": kv_heads, "samples": samples}


def copy(mib):
    return {"name": "copy", "kind": "memory_bound", "dtype": "bf16", "bytes": mib << 20}


def kernels(fp8=True):
    """Every kernel that is measured, as a row without its time."""
    shapes = [(m, n, k) for n, k in GEMM_WEIGHTS for m in GEMM_TOKENS] + list(GEMM_OTHERS)
    rows = [gemm(*shape) for shape in shapes]
    if fp8:
        rows += [gemm(*shape, dtype="fp8") for shape in shapes]
    rows += [attention(f"{library}_{direction}", *shape) for library in ("flash2", "cudnn")
             for direction in ("forward", "backward") for shape in ATTENTION]
    return rows + [copy(mib) for mib in COPY_MIB]


def write(rows, device, source, file):
    writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({"device": device, "level": "kernel", "source": source, **row})


class Gpu:
    """Runs the kernels with PyTorch."""

    def __init__(self, torch, repeats):
        self.torch, self.repeats = torch, repeats
        self.properties = torch.cuda.get_device_properties(0)
        self.cache_bytes = getattr(self.properties, "L2_cache_size", 64 << 20)

    def copies(self, of_bytes):
        """How many sets of operands, so that none is in the cache when its turn comes again."""
        return max(2, min(64, 1 + 3 * self.cache_bytes // max(1, of_bytes)))

    def time_us(self, launch, sets):
        """The median time of launch(i), over repeats of at least 20 launches and 2 ms."""
        torch = self.torch
        def measure(count):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for i in range(count):
                launch(i % sets)
            end.record()
            end.synchronize()
            return start.elapsed_time(end) * 1e3 / count
        count = max(20, int(2e3 / max(1.0, measure(20))))
        return statistics.median(measure(count) for _ in range(self.repeats))

    def run_gemm(self, row):
        torch, sets = self.torch, self.copies(row["bytes"])
        m, n, k = row["m"], row["n"], row["k"]
        a = [torch.randn(m, k, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
        b = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
        if row["dtype"] == "fp8":
            a, b = ([one.to(torch.float8_e4m3fn) for one in side] for side in (a, b))
            one = torch.ones((), device="cuda")
            return self.time_us(lambda i: torch._scaled_mm(a[i], b[i].t(), scale_a=one, scale_b=one,
                                                           out_dtype=torch.bfloat16), sets)
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return self.time_us(lambda i: torch.mm(a[i], b[i].t(), out=out), sets)

    def run_attention(self, row):
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        backend = SDPBackend.CUDNN_ATTENTION if row["kind"].startswith("cudnn") else SDPBackend.FLASH_ATTENTION
        heads = row["batch"] // row["samples"]
        def tensor(count):
            shape = (row["samples"], count, row["m"], row["k"])
            return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=row["kind"].endswith("backward"))
        q, k, v = tensor(heads), tensor(row["kv_heads"]), tensor(row["kv_heads"])
        def forward(_=0):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                                    enable_gqa=heads != row["kv_heads"])
        with sdpa_kernel(backend):
            if row["kind"].endswith("forward"):
                with torch.no_grad():
                    return self.time_us(forward, 1)
            out = forward()
            gradient = torch.randn_like(out)
            return self.time_us(lambda _: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True), 1)

    def run_copy(self, row):
        torch, sets = self.torch, self.copies(row["bytes"])
        elements = row["bytes"] // 4  # 2 bytes each are read and written
        sources = [torch.zeros(elements, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
        target = [torch.empty_like(one) for one in sources]
        return self.time_us(lambda i: target[i].copy_(sources[i]), sets)

    def measure(self, row):
        run = {"gemm": self.run_gemm, "attention": self.run_attention, "copy": self.run_copy}[row["name"]]
        time_us = run(row)
        self.torch.cuda.empty_cache()
        return time_us


def measured(gpu, rows):
    """The rows with their times. A kernel that this GPU or this PyTorch lacks is named and left out."""
    for row in rows:
        try:
            yield {**row, "time_us": f"{gpu.measure(row):.4f}"}
        except (RuntimeError, AttributeError, TypeError, NotImplementedError, ImportError) as error:
            shape = "x".join(str(row[size]) for size in ("m", "n", "k") if size in row) or f"{row['bytes']} B"
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            print(f"measure_kernels.py: {row['kind']} {row['dtype']} {shape} left out: {reason}", file=sys.stderr)


def torch_with_gpu():
    try:
        import torch
    except ImportError:
        sys.exit("measure_kernels.py: PyTorch is not installed here; run it where training runs (--list shows the shapes)")
    if not torch.cuda.is_available():
        sys.exit("measure_kernels.py: PyTorch finds no GPU here; run it where training runs (--list shows the shapes)")
    return torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", metavar="FILE.csv", help="the table to write; default: to the terminal")
    parser.add_argument("--repeats", type=int, default=7, help="a time is their median (default: 7)")
    parser.add_argument("--list", action="store_true", help="only write the shapes, with empty times")
    given = parser.parse_args()
    if given.repeats < 1:
        parser.error("--repeats must be at least 1")
    if given.list:
        device, source, rows = "", "not measured", kernels()
    else:
        torch = torch_with_gpu()
        gpu = Gpu(torch, given.repeats)
        device, source = gpu.properties.name, f"script/measure_kernels.py, PyTorch {torch.__version__}"
        rows = list(measured(gpu, kernels(fp8=hasattr(torch, "float8_e4m3fn"))))
        if not rows:
            sys.exit("measure_kernels.py: no kernel could be measured")
    if given.output:
        with open(given.output, "w", encoding="utf-8", newline="") as file:
            write(rows, device, source, file)
    else:
        write(rows, device, source, sys.stdout)


if __name__ == "__main__":
    main()
