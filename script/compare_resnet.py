#!/usr/bin/python3
"""Compares predicted steps of ResNet-50 with those of docs/facts/steps.csv whose GPU the catalog has.

    script/compare_resnet.py [build/release/manyworlds]

One node of H100 SXM or H200 runs the network with fused convolutions, everything else the plain one (NVIDIA's
configurations in mlcommons/training_results_v3.1 and v4.0, NVIDIA/benchmarks/resnet/implementations, config_*.sh). MXNet
launches by CUDA graphs and reduces gradients behind the backward pass, TensorFlow does neither.
"""

import collections
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GPUS = {
    "H100": "h100_sxm",
    "H200": "h200_sxm",
    "H100_PCIe": "h100_pcie",
    "A100": "a100_80",
    "L40S": "l40s",
    "V100": "v100_32",
    "A100_40GB": "a100_40",
}
EXPERIMENT = """name: published
base:
  model: {model}
  cluster: {{gpu: {gpu}, nodes: {nodes}, gpus_per_node: {per_node}, nic_gbps: {nic}}}
  topology: rail_optimized
  collectives: {{protocol: calibrated}}
  strategy:
    micro_batch: {micro_batch}
    global_batch: {global_batch}
    overlap_grad_reduce: {overlap}
    zero: 0
    stack: {{precision: fp16, cuda_graphs: {graphs}, reduce_in_16bit: true, gradient_accumulation_fusion: false}}
"""


def nic_gbps(row, nodes, per_node):
    """The rate of the network of each GPU; 400 Gb/s where a run has one node, or its network is not told."""
    if nodes == 1:
        return 400
    if row["gpu"] == "L40S":  # two cards of 400 Gb/s for four GPUs
        return 200
    rates = re.findall(r"(\d+)x .*?(\d+) ?Gb", row["network"].split("Compute:")[-1])
    if rates and ("Cornelis" in row["network"] or "EDR" in row["network"]):
        return int(rates[0][0]) * int(rates[0][1]) / per_node
    return 400


def experiment_of(row):
    """The document of a row, or None where the catalog has no such GPU or precision."""
    if row["family"] != "resnet50" or row["gpu"] not in GPUS or "tf32" in row["precision"]:
        return None
    gpus = int(row["gpus"])
    per_node = min(int(row["gpus_per_node"]), gpus)
    nodes = gpus // per_node
    if per_node > 8 and row["gpu"] != "V100":  # ten GPUs behind one host's switches
        return None
    gpu = GPUS[row["gpu"]]
    if gpu == "a100_80" and ("PCIE" in row["source"].upper() or "Fujitsu" in row["source"]):
        gpu = "a100_pcie_80"
    graphs = "TensorFlow" not in row["framework"]
    fused = row["gpu"] in ("H100", "H200") and nodes == 1
    return gpu, EXPERIMENT.format(
        model="resnet-50-mlperf" if fused else "resnet-50",
        gpu=gpu,
        nodes=nodes,
        per_node=per_node,
        nic=nic_gbps(row, nodes, per_node),
        micro_batch=row["mbs"],
        global_batch=int(row["mbs"]) * gpus,
        overlap="false" if graphs else "true",
        graphs="all" if graphs else "none",
    )


def predicted_s(program, text, known={}):
    """The step of an experiment in seconds; equal ones are simulated once."""
    if text not in known:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            answer = subprocess.run([program, "run", file.name, "--json"], capture_output=True, text=True, check=True)
        known[text] = json.loads(answer.stdout)["step_time_s"]
    return known[text]


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "release" / "manyworlds"
    errors = collections.defaultdict(list)
    with open(ROOT / "docs" / "facts" / "steps.csv", encoding="utf-8") as file:
        rows = [(row, experiment_of(row)) for row in csv.DictReader(file)]
    for row, experiment in rows:
        if experiment is None:
            continue
        gpu, text = experiment
        step, measured = predicted_s(program, text), float(row["step_s"])
        error = step / measured - 1
        several = " several nodes" if int(row["gpus"]) > int(row["gpus_per_node"]) else ""
        errors[gpu + several].append(error)
        errors["all"].append(error)
        print(f"{gpu:13}{row['gpus']:>5} x {row['mbs']:4}{1e3 * measured:9.2f} ms{1e3 * step:9.2f} ms{100 * error:+7.1f} %  {row['source'][:80]}")
    for name, each in errors.items():
        sizes = [abs(error) for error in each]
        print(
            f"{name:28}{len(each):4} rows, mean error {100 * statistics.mean(sizes):5.1f} %, median "
            f"{100 * statistics.median(sizes):5.1f} %, from {100 * min(each):+.1f} to {100 * max(each):+.1f} %, "
            f"{sum(size <= 0.15 for size in sizes)} within 15 %"
        )


if __name__ == "__main__":
    main()
