#!/usr/bin/python3
"""Fits the constants of layers of experts to published tables, and prints lines of experiments/measured/gemm_operators.csv.

    script/fit_experts.py NAME_moe.csv.gz...

The tables are those of ai-dynamo/aiconfigurator @095f58a. Four constants of the GEMMs' main loop and epilogue are those of
the dense GEMMs in gemm_operators.csv: fit those first, with script/fit_kernels.py. Fixed times and those of routing are the
same on all GPUs (scanned once by hand). Constants are shared as in fit_kernels.py, and rows drawn as there.
"""

import sys

from fit_kernels import (ARCHITECTURES, COLUMNS, FORMATS, Gemms, catalog_value, drawn, fit, np, part_of, peak_tflops,
                         print_errors, tables_by_gpu)
from normalise_measured import MEASURED, rows_of

EXPERT_TILES = "256x128+128x256+128x128+128x64+64x256+64x128+32x128+16x128"
EXPERT_FIXED = {"bfloat16": (34.0, 100.0), "fp8": (39.5, 300.0), "fp8_block": (36.0, 50.0), "nvfp4": (50.0, 590.0)}
EXPERT_PRIORS = {"efficiency": (0.8, 0.5, 0.2, 1), "load_bytes_per_clock": (80, 0.7, 8, 128),
                 "memory_efficiency": (0.88, 0.2, 0.5, 0.97), "wave_loss": (0.3, 1, 0.05, 1),
                 "unpermute_us_per_m": (1.5, 1, 0.1, 20)}

SERIES = "kernel_source distribution hidden_size inter_size topk num_experts moe_tp_size moe_ep_size".split()


def tuned_rows(gpu, form, table):
    """Rows of experts without those of kernels that nobody tuned, in the order of their series.

    A series of sizes of one model and layout goes if its memory-bound sizes take over 1.6 of the time in which weights are
    read, or if four of its rows take over 1.25 of a larger size's time. Single such rows go alone.
    """
    order = np.lexsort([table[name] for name in ["num_tokens", *reversed(SERIES)]])
    table = part_of(table, order)
    us, per_rank = table["latency"] * 1e3, table["num_experts"] / table["moe_ep_size"]
    matrices = np.where(np.char.find(table["kernel_source"], "nongated") >= 0, 2, 3)
    weights = per_rank * matrices * table["hidden_size"] * table["inter_size"] / table["moe_tp_size"] * FORMATS[form][2]
    ratio = us / (weights / (catalog_value(gpu, "memory_gb_per_s") * 0.9e3) + 55)
    load = table["num_tokens"] * table["topk"] / table["num_experts"]
    bound = (load >= 4) & (load <= 48) & (table["distribution"] == "balanced") | (load >= 16) & (load <= 64)
    changes = [column[1:] != column[:-1] for column in (table[name] for name in SERIES)]
    edges = np.concatenate([[0], np.flatnonzero(np.any(changes, axis=0)) + 1, [len(us)]])
    kept = []
    for rows in map(np.arange, edges, edges[1:]):
        spike = us[rows] > 1.25 * np.minimum.accumulate(us[rows][::-1])[::-1]
        ratios = ratio[rows][bound[rows]]
        if spike.sum() < 4 and not (len(ratios) and np.median(ratios) > 1.6):
            kept.append(rows[~spike])
    return part_of(table, np.concatenate(kept))


def loads(tokens, experts, chosen, ranks, distribution):
    """Returns tokens of each expert of a rank, one row per draw.

    Balanced: each expert has as many. Power law: as the collector draws them, eight times, on the rank with the most.
    """
    if distribution == "balanced":
        each, more = divmod(tokens * chosen, experts)
        return (each + (np.arange(experts // ranks) * ranks < more))[None]
    power = 1 - float(distribution.split("_")[-1])
    low, high = (1, tokens * 0.8) if tokens * chosen > experts else (0.01, 2)
    share = ((high**power - low**power) * np.random.default_rng(1).random((8, experts)) + low**power) ** (1 / power)
    each = np.minimum(np.round(share / share.sum(1, keepdims=True) * tokens * chosen), tokens).reshape(8, ranks, -1)
    return each[np.arange(8), each.sum(2).argmax(1)]


def experts_model(gpu, form, table, dense):
    """A layer of experts: two grouped GEMMs, the bytes between them, and fixed times of routing and adding up.

        us = gemm(halves f, h) + gemm(h, f) + bytes / (bandwidth * memory_efficiency)
             + unpermute_us_per_m * pairs h / 1e6 + route_us_per_m * tokens topk / 1e6 + fixed_us
    """
    tokens, hidden, chosen = table["num_tokens"], table["hidden_size"], table["topk"]
    ffn, element = table["inter_size"] / table["moe_tp_size"], FORMATS[form][2]
    each = [loads(int(t), int(e), int(k), int(r), d) for t, e, k, r, d in
            zip(tokens, table["num_experts"], chosen, table["moe_ep_size"], table["distribution"])]
    pairs, active = (np.array([count(one).sum(1).mean() for one in each]) for count in (lambda x: x, lambda x: x > 0))
    halves = np.where(np.char.find(table["kernel_source"], "nongated") >= 0, 1, 2)
    heights = {high: np.array([np.ceil(one / high).sum(1).mean() for one in each]) for high in (256, 128, 64, 32, 16)}
    both = [Gemms(gpu, form, EXPERT_TILES, 1, n, k, (pairs * k + active * n * k) * element + 2 * pairs * n, heights.get)
            for n, k in ((halves * ffn, hidden), (hidden, ffn))]
    moved = 4 * tokens * hidden + pairs * (hidden + ffn) * element + 2 * pairs * halves * ffn
    rate, (fixed, route) = catalog_value(gpu, "memory_gb_per_s") * 1e3, EXPERT_FIXED[form]
    return lambda c: (sum(one.us({**dense, **c}) for one in both) + moved / (rate * c["memory_efficiency"])
                      + c["unpermute_us_per_m"] * pairs * hidden * 1e-6 + route * tokens * chosen * 1e-6 + fixed)


def fit_experts(gpus, form, tables, dense):
    def rates(gpu, c):
        return (peak_tflops(gpu, FORMATS[form][0]) * c["efficiency"],
                catalog_value(gpu, "memory_gb_per_s") * c["memory_efficiency"], 1 / c["unpermute_us_per_m"])

    rows = {}
    for gpu in gpus:
        table = part_of(tables[gpu], drawn(np.arange(len(tables[gpu]["latency"])), 1300, 0))
        rows[gpu] = (experts_model(gpu, form, table, dense[gpu]), table["latency"] * 1e3, None)
    own = ["efficiency", "memory_efficiency", "unpermute_us_per_m"]
    return fit(gpus, ["load_bytes_per_clock", "wave_loss"], own, EXPERT_PRIORS, rows, rates, {}, 0.001, 1300)


def known_dense():
    """Dense constants by GPU and the catalog's name of the format."""
    return {(row["gpu"], row["format"]): {key: float(row[key]) for key in COLUMNS[:8]}
            for row in rows_of(MEASURED / "gemm_operators.csv") if row["operator"] == "gemm"}


def modelled_rows(gpu, form, table):
    # The A100's table has no balanced rows.
    drawn_tokens = ["power_law_1.01", "power_law_1.2"] if gpu == "a100_80" else ["balanced"]
    rows = ((table["moe_dtype"] == form) & (table["latency"] >= 0.05) & np.isin(table["distribution"], drawn_tokens)
            & (table["kernel_source"] != "moe_torch_flow_min_latency")
            & (table["num_experts"] // table["moe_ep_size"] > 1))
    return tuned_rows(gpu, form, part_of(table, rows))


def print_experts(gpu, form, table, dense, constants):
    sample = part_of(table, drawn(np.arange(len(table["latency"])), 6000, 5))
    model = experts_model(gpu, form, sample, dense)
    print_errors(f"{gpu} {FORMATS[form][0]} experts", model(constants), sample["latency"] * 1e3)
    values = {key: float(f"{value:.4g}") for key, value in {**dense, **constants}.items()}
    fixed, route = EXPERT_FIXED[form]
    values = {**values, "fixed_us": fixed, "route_us_per_m": route, "tiles": EXPERT_TILES, "max_split": 1}
    return ",".join([gpu, FORMATS[form][0], "experts", *(str(values.get(column, 0)) for column in COLUMNS)])


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    tables, known, operators = tables_by_gpu(sys.argv[1:], "moe_dtype"), known_dense(), []
    for form, (name, *_) in FORMATS.items():
        for architecture in ARCHITECTURES:
            gpus = [gpu for gpu in architecture if gpu in tables and (gpu, name) in known]
            rows = {gpu: modelled_rows(gpu, form, tables[gpu]) for gpu in gpus}
            dense = {gpu: known[gpu, name] for gpu in gpus}
            for gpu, constants in (fit_experts(gpus, form, rows, dense) if gpus else {}).items():
                operators.append(print_experts(gpu, form, rows[gpu], dense[gpu], constants))
    print("\n".join(operators))


if __name__ == "__main__":
    main()
