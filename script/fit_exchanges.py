#!/usr/bin/python3
"""Fits the kernels that exchange experts' tokens to published tables, and prints lines of experiments/catalog/libraries.

    script/fit_exchanges.py NAME_wideep_deepep_normal_perf.csv NAME_wideep_deepep_ll_perf.csv NAME_trtllm_alltoall_perf.csv...
    script/fit_exchanges.py --select FOLDER TABLE...

The tables are those of ai-dynamo/aiconfigurator @095f58a. With --select their compact forms are written to FOLDER, as in
experiments/measured: every seventh row of the large ones, which meets every size, shape and number of compute units.

The equation is that of core/collective/library/token_exchange.cpp, for T tokens of b bytes with D destinations:
    us = launch + log2(..) launch_per_log2 + b / row + longer_of(T / units (D (destination + b / destination_rate)
                                                                           + b / token_rate), bytes / wire)
"""

import argparse
import csv
import pathlib
from math import comb

import numpy as np
from scipy.optimize import least_squares

LINK_GB_PER_S = {"H100": 450, "H200": 450, "B200": 900, "GB200": 900}
LINK_SHARE = {"H100": 0.8132, "H200": 0.8132}     # library_link_share, a limit to what kernels reach
NIC_GB_PER_S = 50 * 0.92                          # 400 Gb/s at library_nic_share
COMPUTE_UNITS = {"H100": 132, "H200": 132, "B200": 148, "GB200": 148}
SHARPNESS = 6
GPUS_OF_NODE, NODES_OF_TOKEN = 8, 4

#              start, least, most
FIGURES = {"launch_us": (15, 1, 200), "launch_per_log2_us": (2, 0.01, 60), "row_gb_per_s": (5, 0.05, 1e3),
           "destination_ns": (50, 1, 1e5), "destination_gb_per_s": (30, 0.5, 1e3), "token_gb_per_s": (30, 0.5, 1e3),
           "wire_gb_per_s": (300, 10, 900)}
SETS = {"deepep": "launch_us row_gb_per_s destination_ns destination_gb_per_s token_gb_per_s wire_gb_per_s",
        "deepep_between": "launch_us launch_per_log2_us destination_gb_per_s token_gb_per_s",
        "low_latency": "launch_us launch_per_log2_us row_gb_per_s destination_ns token_gb_per_s wire_gb_per_s",
        "low_latency_between": "launch_us launch_per_log2_us",
        "trtllm_two_sided": "launch_us launch_per_log2_us destination_ns token_gb_per_s wire_gb_per_s",
        "trtllm_one_sided": "launch_us launch_per_log2_us token_gb_per_s wire_gb_per_s"}

KEPT = {"normal": "device node_num hidden_size num_token num_topk num_experts dispatch_sms dispatch_transmit_us combine_sms "
                  "combine_transmit_us",
        "ll": "device node_num hidden_size num_token num_topk num_experts dispatch_avg_t_us combine_avg_t_us",
        "trtllm": "device op_name kernel_source moe_dtype num_tokens hidden_size topk num_experts moe_ep_size distribution "
                  "latency"}
COMPACT = {"normal": "exchanges_deepep.csv", "ll": "exchanges_low_latency.csv", "trtllm": "exchanges_trtllm.csv"}


def kind_of(rows):
    if "dispatch_sms" in rows[0]:
        return "normal"
    return "ll" if "dispatch_avg_t_us" in rows[0] else "trtllm"


def chip_of(device):
    return device.removeprefix("NVIDIA ").split()[0]


def reached(experts, chosen, groups):
    """Groups of experts that a token reaches on average."""
    return groups * (1 - comb(experts - experts // groups, chosen) / comb(experts, chosen))


def doublings(count):
    """The base-2 logarithm, linear between powers of two."""
    whole = int(np.floor(np.log2(max(1, count)) + 1e-9))
    return whole + max(1, count) / 2**whole - 1


def deepep_rows(table, low_latency):
    """(set, chip, direction) and the quantities of the equation of each row's two directions."""
    for row in table:
        nodes, hidden, tokens = int(row["node_num"]), int(row["hidden_size"]), int(row["num_token"])
        chosen, experts, chip = int(row["num_topk"]), int(row["num_experts"]), chip_of(row["device"])
        ranks, among = nodes * GPUS_OF_NODE, min(nodes, NODES_OF_TOKEN)
        for combine in (False, True):
            way = "combine" if combine else "dispatch"
            row_bytes = 2 * hidden if combine else hidden + hidden // 32
            row_bytes += 0 if low_latency and combine else 16
            if low_latency:
                ranks_reached, nodes_reached = chosen, chosen * GPUS_OF_NODE / ranks * nodes
                units = min(experts, COMPUTE_UNITS[chip])
            else:
                nodes_reached = reached(experts // nodes * among, chosen, among)
                ranks_reached = reached(experts // nodes * among, chosen, min(GPUS_OF_NODE * among, experts))
                units = int(row[f"{way}_sms"])
            name = ("low_latency" if low_latency else "deepep") + ("_between" if nodes > 1 else "")
            yield (name, chip, way), {
                "tokens": tokens, "row": row_bytes, "units": units, "nodes": nodes,
                "destinations": nodes_reached if nodes > 1 else ranks_reached,
                "link_bytes": tokens * ranks_reached * row_bytes * nodes * (GPUS_OF_NODE - 1) / ranks,
                "nic_bytes": tokens * nodes_reached / nodes * row_bytes * (nodes - 1),
                "log2": doublings(nodes) if nodes > 1 else doublings(experts / ranks) if low_latency else 0,
                "us": float(row[f"{way}_avg_t_us" if low_latency else f"{way}_transmit_us"])}


def trtllm_rows(table):
    for row in table:
        way = {"alltoall_dispatch": "dispatch", "alltoall_combine": "combine"}.get(row["op_name"])
        if way is None:
            continue
        hidden, ranks, tokens = int(row["hidden_size"]), int(row["moe_ep_size"]), int(row["num_tokens"])
        form = "bfloat16" if way == "combine" else row["moe_dtype"]
        row_bytes = {"bfloat16": 2 * hidden, "fp8": hidden, "nvfp4": hidden // 2 + hidden // 16}[form]
        to = min(int(row["topk"]), ranks)
        name = "trtllm_one_sided" if row["kernel_source"] == "NVLinkOneSided" else "trtllm_two_sided"
        yield (name, chip_of(row["device"]), way), {
            "tokens": tokens, "row": row_bytes, "units": 1, "nodes": 1, "destinations": to,
            "link_bytes": tokens * to * row_bytes * (ranks - 1) / ranks, "nic_bytes": 0, "log2": doublings(ranks),
            "us": float(row["latency"]) * 1e3}


def longer_of(a, b):
    most = np.maximum(np.maximum(a, b), 1e-12)
    return most * ((a / most) ** SHARPNESS + (b / most) ** SHARPNESS) ** (1 / SHARPNESS)


def predicted(figures, rows, wire):
    rate = lambda name: figures.get(name, np.inf) * 1e3
    work = rows["tokens"] / rows["units"] * (
        rows["destinations"] * (figures.get("destination_ns", 0) * 1e-3 + rows["row"] / rate("destination_gb_per_s")) +
        rows["row"] / rate("token_gb_per_s"))
    wire_us = np.maximum(rows["link_bytes"] / (wire * 1e3), rows["nic_bytes"] / (NIC_GB_PER_S * 1e3))
    return (figures["launch_us"] + figures.get("launch_per_log2_us", 0) * rows["log2"] + rows["row"] / rate("row_gb_per_s") +
            longer_of(work, wire_us))


def is_congested(name, way, rows):
    """Eight nodes: DeepEP's normal kernels reach a third of the NIC there, while others reach all of it on the same nodes."""
    if name != "deepep_between":
        return np.zeros(len(rows["us"]), bool)
    return (rows["nodes"] > 4) & (rows["tokens"] >= (128 if way == "dispatch" else 8193))


def fit(name, way, rows, wire):
    names = SETS[name].split()
    start, low, high = (np.log([FIGURES[one][i] for one in names]) for i in range(3))
    used = ~is_congested(name, way, rows)
    part = {key: value[used] for key, value in rows.items()}

    def residuals(x):
        figures = dict(zip(names, np.exp(x)))
        return np.log(predicted(figures, part, figures.get("wire_gb_per_s", wire)) / part["us"])

    best = None
    for shift in (0, -1.5, 1.5):  # rates start low, as they are, and high
        begin = np.clip(start + [shift if "gb_per_s" in one and one != "wire_gb_per_s" else 0 for one in names],
                        low + 1e-6, high - 1e-6)
        found = least_squares(residuals, begin, bounds=(low, high), loss="soft_l1", f_scale=0.1, max_nfev=60)
        if best is None or found.cost < best.cost:
            best = found
    return dict(zip(names, np.exp(best.x)))


def error(figures, rows, wire):
    off = predicted(figures, rows, figures.get("wire_gb_per_s", wire)) / rows["us"] - 1
    return f"mean error {abs(off).mean() * 100:.1f} %, bias {off.mean() * 100:+.1f} %, {len(off)} rows"


def fit_all(tables):
    parts = {}
    for kind, rows in tables:
        for key, row in trtllm_rows(rows) if kind == "trtllm" else deepep_rows(rows, kind == "ll"):
            parts.setdefault(key, []).append(row)
    wires = {}
    for (name, chip, way), rows in sorted(parts.items()):
        rows = {key: np.array([row[key] for row in rows], float) for key in rows[0]}
        wire = wires.get((name.removesuffix("_between"), chip, way),
                         LINK_GB_PER_S[chip] * LINK_SHARE.get(chip, 1))
        half = {key: value[np.arange(len(value)) // 23 % 2 == 0] for key, value in rows.items()}
        other = {key: value[np.arange(len(value)) // 23 % 2 == 1] for key, value in rows.items()}
        figures = fit(name, way, rows, wire)
        wires[name, chip, way] = figures.get("wire_gb_per_s", wire)
        print(f"# {chip} {name} {way}: {error(figures, rows, wire)};", "every second series held out:",
              error(fit(name, way, half, wire), other, wire) if len(other["us"]) else "none")
        for figure, value in figures.items():
            if "wire" not in figure and value > 0.99 * FIGURES[figure][2]:
                continue  # so fast that it costs nothing
            print(f"  library_tokens_{name}_{way}_{figure}: {value:.4g}")


def select(tables, folder):
    for kind, compact in COMPACT.items():
        chosen = []
        for _, rows in (table for table in tables if table[0] == kind):
            if kind == "trtllm":
                rows = [row for row in rows if row["op_name"] in ("alltoall_dispatch", "alltoall_combine")]
            single, several = ([row for row in rows if (row.get("node_num", "1") == "1") == one] for one in (True, False))
            chosen += single[3::7] if len(single) > 1000 else single[::2] if len(single) > 100 else single
            chosen += several[1::3] if len(several) > 100 else several
        columns = KEPT[kind].split()
        with open(folder / compact, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            for row in chosen:
                short = {column: f"{float(text):.6g}" if column.endswith("_us") or column == "latency" else text
                         for column, text in row.items()}
                writer.writerow(short)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", type=pathlib.Path)
    parser.add_argument("tables", nargs="+")
    given = parser.parse_args()
    tables = []
    for path in given.tables:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        tables.append((kind_of(rows), rows))
    if given.select:
        select(tables, given.select)
    else:
        fit_all(tables)


if __name__ == "__main__":
    main()
