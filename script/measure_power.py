#!/usr/bin/env python3
"""Measures how far the power limit of this machine's GPU slows its kernels down, by what runs between them.

    script/measure_power.py -o power.csv    # a minute

Each row is a loop of some seconds without pauses: GEMMs of one shape and number format, and between them copies that wait for
memory, for a given share of the time. It has the mean time of a GEMM and of a copy, of the second half of the loop, and the
clock of the multiprocessors and the power that NVML reports meanwhile.
"""

import argparse
import csv
import statistics
import sys
import threading
import time

from measure_kernels import torch_with_gpu

COLUMNS = "device dtype m n k copy_bytes gemm_share gemm_us copy_us sm_clock_mhz power_w power_limit_w source".split()
SHAPES = (("bf16", 8192, 2048, 8192), ("bf16", 8192, 8192, 8192), ("bf16", 8192, 14336, 4096), ("fp8", 8192, 8192, 8192))
SHARES = (1.0, 0.8, 0.65, 0.5, 0.35, 0.2)  # of the time, by what both take alone for a moment
COPY_BYTES = 256 << 20  # read and written together
SECONDS = 3.0


class Meter:
    """Samples clock and power every 20 ms while it is open."""

    def __init__(self, nvml, device):
        self.nvml, self.device, self.samples, self.ends = nvml, device, [], threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while not self.ends.wait(0.02):
            self.samples.append((time.perf_counter(), self.nvml.nvmlDeviceGetClockInfo(self.device, self.nvml.NVML_CLOCK_SM),
                                 self.nvml.nvmlDeviceGetPowerUsage(self.device) / 1e3))

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def means_since(self, begin):
        chosen = [sample for sample in self.samples if sample[0] >= begin]
        return [statistics.fmean(sample[i] for sample in chosen) for i in (1, 2)] if chosen else [float("nan")] * 2


class Loop:
    """GEMMs of a shape with copies between them."""

    def __init__(self, torch, dtype, m, n, k):
        self.torch = torch
        a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
        if dtype == "fp8":
            a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
            one = torch.ones((), device="cuda")
            self.gemm = lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        else:
            out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            self.gemm = lambda: torch.mm(a, b.t(), out=out)
        source = torch.zeros(COPY_BYTES // 4, device="cuda", dtype=torch.bfloat16)
        target = torch.empty_like(source)
        self.copy = lambda: target.copy_(source)

    def times_us(self, gemms, copies):
        """What the GEMMs and copies of one round take, each."""
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(3)]
        events[0].record()
        for _ in range(gemms):
            self.gemm()
        events[1].record()
        for _ in range(copies):
            self.copy()
        events[2].record()
        return events, gemms, copies

    @staticmethod
    def read(round_):
        events, gemms, copies = round_
        events[2].synchronize()
        return (events[0].elapsed_time(events[1]) * 1e3 / max(1, gemms), events[1].elapsed_time(events[2]) * 1e3 / max(1, copies))

    def first(self):
        """What they take after a few rounds."""
        return [self.read(self.times_us(3, 3)) for _ in range(5)][-1]

    def sustained(self, gemms, copies, meter):
        begin, under_way, done = time.perf_counter(), [], []
        while time.perf_counter() < begin + SECONDS:
            under_way.append(self.times_us(gemms, copies))
            if len(under_way) > 4:  # a few are launched ahead, so that the GPU never waits
                done.append((time.perf_counter(), self.read(under_way.pop(0))))
        self.torch.cuda.synchronize()
        half = begin + SECONDS / 2
        late = [times for at, times in done if at >= half]
        return [statistics.fmean(one[i] for one in late) for i in (0, 1)], meter.means_since(half)


def rows(torch, nvml):
    device = nvml.nvmlDeviceGetHandleByIndex(0)
    common = {"device": torch.cuda.get_device_properties(0).name, "copy_bytes": COPY_BYTES,
              "power_limit_w": nvml.nvmlDeviceGetPowerManagementLimit(device) / 1e3,
              "source": f"script/measure_power.py, PyTorch {torch.__version__}"}
    for dtype, m, n, k in SHAPES:
        shape = {**common, "dtype": dtype, "m": m, "n": n, "k": k}
        loop = Loop(torch, dtype, m, n, k)
        gemm_us, copy_us = loop.first()
        for share in SHARES:
            gemms = max(1, round(1500 / gemm_us))
            copies = round(gemms * gemm_us * (1 - share) / share / copy_us)
            with Meter(nvml, device) as meter:
                (gemm, copy), (clock, power) = loop.sustained(gemms, copies, meter)
            real_share = gemms * gemm / (gemms * gemm + copies * copy) if copies else 1
            yield {**shape, "gemm_share": f"{real_share:.3f}", "gemm_us": f"{gemm:.2f}",
                   "copy_us": f"{copy:.2f}" if copies else "", "sm_clock_mhz": f"{clock:.0f}", "power_w": f"{power:.0f}"}
        del loop
        torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", metavar="FILE.csv", help="the table to write; default: to the terminal")
    given = parser.parse_args()
    torch = torch_with_gpu()
    try:
        import pynvml
    except ImportError:
        sys.exit("measure_power.py: nvidia-ml-py is not installed here (pip install nvidia-ml-py)")
    pynvml.nvmlInit()
    with open(given.output, "w", encoding="utf-8", newline="") if given.output else sys.stdout as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows(torch, pynvml):
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main()
