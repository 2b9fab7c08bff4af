#!/usr/bin/env python3
"""The optimisations of MXMACA's article, each turned off and on by a sweep of ours: step time, communication that is waited
for and memory at its peak, beside what the article claims of its own GPUs.

    tests/bench/sixteen.py --build build/release

Number 11, its search, is tests/bench/twenty_keys.py and `manyworlds search`; 13 finds slow ranks (`manyworlds stragglers`),
what one costs is here."""

import argparse
import csv
import io
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPOSED = ["exposed_tp_s", "exposed_dp_s", "exposed_pp_s", "exposed_cp_s", "exposed_ep_s"]


def stack(**keys):
    return {f"strategy.stack.{name}": value for name, value in keys.items()}


def strategy(**keys):
    return {f"strategy.{name}": value for name, value in keys.items()}


# Number, what, sweep, off, on, claim. Experiments are named by values of their columns; the first that has them is meant.
LLAMA = {"model": "like=llama3-8b,layers=4"}
OPTIMISATIONS = [
    (1, "copies of hot experts, Zipf 1", "hot_experts",
     {"routing.exponent": "1", "strategy.hot_experts": "false"}, {"routing.exponent": "1", "strategy.hot_experts": "true"},
     "+8 %"),
    (2, "recompute on loaded ranks", "adaptive_recompute",
     strategy(recompute="none", expert_recompute_tokens="0"), strategy(recompute="none", expert_recompute_tokens="80000"),
     "fits"),
    (3, "DualPipeV over 1F1B", "schedules", strategy(schedule="1f1b"), strategy(schedule="dualpipev"), "+10 %"),
    (4, "second level of recompute", "multi_level_recompute",
     strategy(recompute_modules="none"), strategy(recompute_modules="layernorm+mla_up_proj+mlp+moe_act+shared_experts"),
     "-12 % memory, -3 %"),
    (5, "batched GEMMs of experts", "batched_experts",
     {"routing": "balanced", **strategy(capacity_factor="0", expert_gemm="grouped")},
     {"routing": "balanced", **strategy(pad_to_capacity="true", expert_gemm="batched")}, "+15 % of experts"),
    (6, "copy engines", "copy_engine", stack(communication_engine="calibrated"), stack(communication_engine="copy"),
     "+4 to 8 %"),
    (7, "tensor-parallel overlap", "tensor_overlap",
     stack(communication_engine="calibrated", overlap_tensor="false"),
     stack(communication_engine="calibrated", overlap_tensor="true"), "comm -20 %, +5 to 10 %"),
    (8, "exchange of tokens beside, one node", "expert_exchange",
     {"cluster.nodes": "1", **stack(overlap_shared_expert="false", delay_expert_weights="false", overlap_experts="false")},
     {"cluster.nodes": "1", **stack(overlap_shared_expert="true", delay_expert_weights="true")}, "75 %, +8 to 10 %"),
    (8, "the same, two nodes", "expert_exchange",
     {"cluster.nodes": "2", **stack(overlap_shared_expert="false", delay_expert_weights="false", overlap_experts="false")},
     {"cluster.nodes": "2", **stack(overlap_shared_expert="true", delay_expert_weights="true")}, "75 %, +8 to 10 %"),
    (9, "offload over partial recompute", "offload",
     strategy(recompute="full", recompute_layers="10"), strategy(offload_modules="mlp_act"), "+6 %"),
    (10, "norms and activations again", "granular_recompute",
     strategy(recompute_modules="none"), strategy(recompute_modules="layernorm+mlp_act"), ""),
    (12, "flash checkpoint, two copies", "checkpointing",
     {"cluster.nodes": "1024", "training.checkpoint": "sync"},
     {"cluster.nodes": "1024", "training.checkpoint": "flash", "training.replicas": "2"}, "-85 % of waste"),
    (13, "a slow GPU (0.8) replaced", "stragglers", {"faults.slow_gpus": "gpu3=0.8"}, {"faults.slow_gpus": "", "faults.slow": ""},
     "found"),
    (14, "fusions, Llama 3 8B", "fusions",
     {**LLAMA, **stack(bias_activation_fusion="false", rope_fusion="false")}, LLAMA, "+5 %"),
    (15, "ZB-H1 over 1F1B", "schedules", strategy(schedule="1f1b"), strategy(schedule="zb_h1"), "+8 to 12 %"),
    (16, "empty layers, two chunks", "empty_layers",
     strategy(empty_layers="0"), strategy(empty_layers="3", virtual_stages="2"), "+6 %"),
]


class Runs:
    """Of each sweep the table of its experiments, simulated once."""

    def __init__(self, program, folder):
        self.program, self.folder, self.tables = program, folder, {}

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def row(self, sweep, values):
        if sweep not in self.tables:
            self.run("sweep", ROOT / "experiments" / "sweeps" / f"{sweep}.yaml", "-o", self.folder / sweep, "--store", "none")
            self.tables[sweep] = list(csv.DictReader(io.StringIO(self.run("export", self.folder / sweep, "--csv"))))
        for row in self.tables[sweep]:
            if all(row[column] == value for column, value in values.items()):
                return row
        sys.exit(f"{sweep}: no experiment has {values}")


def told(row):
    memory = f"{float(row['memory_peak_bytes']) / 2**30:6.1f}"
    if row["status"] != "ran":
        return "does not fit", "", memory
    return f"{float(row['step_time_s']):8.4f}", f"{sum(float(row[column]) for column in EXPOSED):7.4f}", memory


def effect(off, on):
    if off["status"] != "ran":
        return "fits" if on["status"] == "ran" else ""
    if "goodput" in off and off["goodput"] != on["goodput"]:
        waste = (1 - float(on["goodput"])) / (1 - float(off["goodput"])) - 1
        return f"{100 * waste:+.0f} % of waste"
    return f"{100 * (float(off['step_time_s']) / float(on['step_time_s']) - 1):+.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    given = parser.parse_args()
    line = "{:>2}  {:<36} {:>12} {:>12}  {:>9} {:>9}  {:>8} {:>8}  {:>14}  {}"
    print(line.format("#", "", "step off, s", "on", "exposed", "on", "peak GiB", "on", "effect", "claim"))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(str((given.build / "manyworlds").resolve()), pathlib.Path(folder))
        for number, what, sweep, off_values, on_values, claim in OPTIMISATIONS:
            off, on = runs.row(sweep, off_values), runs.row(sweep, on_values)
            (step, exposed, peak), (step_on, exposed_on, peak_on) = told(off), told(on)
            print(line.format(number, what, step, step_on, exposed, exposed_on, peak, peak_on, effect(off, on), claim))
    return 0


if __name__ == "__main__":
    sys.exit(main())
