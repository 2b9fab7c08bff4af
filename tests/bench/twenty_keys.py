#!/usr/bin/env python3
"""Does the analytic pass find what packets would? Times planning and the analytic pass of
experiments/sweeps/twenty_keys.yaml, then simulates a smaller sample of the same draw packet by packet and compares the two
rankings. The five that the whole pass has at its top are simulated packet by packet as well, beside that sample's best.

    tests/bench/twenty_keys.py --build build/release [--analytic 10000] [--packet 200] [--ranks 2] [-o DIR] [--set KEY=VALUE]...

Runs in DIR are gone on with, so an interrupted bench may be started again by the same line."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SWEEP = ROOT / "experiments" / "sweeps" / "twenty_keys.yaml"


def ranks_of(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks, begin = [0.0] * len(values), 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for i in order[begin:end]:
            ranks[i] = (begin + end - 1) / 2
        begin = end
    return ranks


def spearman(a, b):
    x, y, mean = ranks_of(a), ranks_of(b), (len(a) - 1) / 2
    covariance = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    return covariance / (sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)) ** 0.5


class Bench:
    def __init__(self, given):
        self.program = str((given.build / "manyworlds").resolve())
        self.ranks = given.ranks
        self.sets = [word for pair in given.set for word in ("--set", pair)]

    def run(self, *words):
        began = time.monotonic()
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout, time.monotonic() - began

    def sweep(self, directory, count, fidelity, *words):
        return self.run("sweep", SWEEP, "-o", directory, "-j", self.ranks, "--store", "none", "--set",
                        f"fidelity={fidelity}", "--set", f"sample.experiments={count}", *self.sets, *words)

    def top(self, directory, count):
        stdout, _ = self.run("top", directory, "-k", count, "--json")
        return json.loads(stdout)["rows"]

    def throughput(self, directory):
        """By the layout in full, what ran of a run, best first."""
        return {row["layout"]: row["columns"]["tokens_per_s_per_gpu"] for row in self.top(directory, 1_000_000)}

    def packet_throughput(self, number, count):
        """Of the layout with this number in a draw of so many."""
        stdout, _ = self.run("run", SWEEP, "--experiment", number, "--json", "--set", "fidelity=packet", "--set",
                             f"sample.experiments={count}", *self.sets)
        return json.loads(stdout)["tokens_per_s_per_gpu"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--analytic", type=int, default=10_000, help="layouts of the analytic pass")
    parser.add_argument("--packet", type=int, default=200, help="layouts of both fidelities")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="default: a temporary folder")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    bench = Bench(given)
    keys = len(set(re.findall(r"\bstrategy\.[\w.]+(?=: \[)", SWEEP.read_text())))
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.output or pathlib.Path(temporary)
        told = {"axes": keys}
        if given.analytic > 0:
            plan, planning_s = bench.run("sweep", SWEEP, "--dry-run", "--json", "--set", "fidelity=analytic", "--set",
                                         f"sample.experiments={given.analytic}", *bench.sets)
            plan = json.loads(plan)
            _, pass_s = bench.sweep(folder / "analytic", given.analytic, "analytic")
            told |= {"planned": plan["experiments"], "planning_s": round(planning_s, 1), "fidelity": "analytic",
                     "out_of_memory": plan["out_of_memory"], "analytic_pass_s": round(pass_s, 1), "ranks": given.ranks}
            first = [row["columns"]["id"] for row in bench.top(folder / "analytic", 5)]
            told["top_5_of_the_pass_by_packets"] = [bench.packet_throughput(one, given.analytic) for one in first]
        _, screened_s = bench.sweep(folder / "screened", given.packet, "analytic")
        _, packet_s = bench.sweep(folder / "packet", given.packet, "packet")
        screened, packet = bench.throughput(folder / "screened"), bench.throughput(folder / "packet")
        both = [layout for layout in packet if layout in screened]
        order = list(screened)
        best = next(iter(packet))
        place = order.index(best) + 1
        told |= {"sampled": given.packet, "ran": len(both), "screened_s": round(screened_s, 1),
                 "packet_s": round(packet_s, 1), "best_by_packets": best, "its_analytic_place": place,
                 "analytic_top_5_has_it": place <= 5,
                 "loss_if_the_analytic_best_is_taken": round(1 - packet[order[0]] / packet[best], 4),
                 "loss_if_the_best_of_its_top_5_is_taken": round(1 - max(packet[o] for o in order[:5]) / packet[best], 4),
                 "tokens_per_s_per_gpu_of_the_sample_best": packet[best],
                 "spearman": round(spearman([screened[o] for o in both], [packet[o] for o in both]), 4)}
    print(json.dumps(told, indent=1))
    return 0 if place <= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
