#!/usr/bin/python3
"""Fits the constants of GPU kernels to published tables of measured kernels, and prints them for the catalog.

    script/fit_kernels.py gemm|attention|memory TABLE...

gemm       NAME_gemm.csv.gz of ai-dynamo/aiconfigurator @095f58a
attention  NAME_context_attention.csv.gz and NAME_context_mla.csv.gz of it, and system files of SimuMax @4dcaae5 (.json)
memory     neusight_elem.csv.gz, the element-wise kernels of sitar-lab/NeuSight @6945927

Lines of experiments/catalog/gpus/GPU.yaml follow a comment with the GPU and the errors of rows from 50 us; lines of
experiments/measured/{gemm,attention}_operators.csv come last. The models are those of core/compute/gemm.cpp and
attention.cpp (which counts tiles of attention by a closed form). Peaks, bandwidths, clocks and units are read from the
catalog. Constants of a chip's design are shared by the GPUs of an architecture, so give all tables of one together; the
others are each GPU's own, and no rate of a newer GPU of an architecture is lower. Rows are drawn with fixed seeds.

Layers of experts: script/fit_experts.py. Not fitted: launches and fixed times that are constants here, and how much of
attention overlaps (scanned once by hand); FlashAttention 3 and 4; GPUs without tables, whose constants the catalog guesses;
norms, softmax and unfused FP8 scaling; `sustained_rate`, which `manyworlds validate --fit` takes from training steps.
"""

import argparse
import csv
import functools
import gzip
import json
import re
import sys

from normalise_measured import MEASURED, normal, rows_of

try:
    import numpy as np
    from scipy.optimize import least_squares, minimize
except ImportError as error:
    sys.exit(f"fit_kernels.py: {error}; install python3-numpy and python3-scipy and run it with /usr/bin/python3")

ARCHITECTURES = [["a100_80"], ["h100_sxm", "h200_sxm"], ["b200_hgx", "gb200_nvl72", "gb300_nvl72"]]  # by age
COLLECTOR = "ai-dynamo/aiconfigurator @095f58a"
LONG_US, LAUNCH_US = 50, 3.2  # the launch of a GEMM: near the smallest kernels of the tables, the same on all GPUs
COLUMNS = ("efficiency prologue_k epilogue_clocks load_bytes_per_clock memory_efficiency wave_loss throttle throttle_ms "
           "tiles max_split fixed_us quantise_us_per_m unpermute_us_per_m route_us_per_m").split()

# GEMMs by the tables' names of formats: the catalog's format and prefix, bytes of an operand's element, thread blocks
# that may share a tile, fixed time of the quantisation that the tables include.
FORMATS = {"bfloat16": ("bf16", "gemm_", 2, 16, 0), "fp8": ("fp8", "fp8_gemm_", 1, 16, 9.5),
           "fp8_block": ("fp8_block", None, 1, 1, 1.8), "nvfp4": ("nvfp4", "fp4_gemm_", 0.5625, 1, 4.5)}
TILES = "256x128+128x256+128x192+128x128+128x64+64x128+64x64"
OTHER_TILES = {("a100_80", "bfloat16"): "256x128+128x256+128x128+64x128+64x32",
               **{(gpu, "nvfp4"): "256x256+256x128+128x256+128x128" for gpu in ARCHITECTURES[2]},
               **{(gpu, "fp8_block"): "128x128+128x64+64x128+64x64+64x32" for gpu in ARCHITECTURES[1]}}

# Of each constant: an ordinary value, its spread as a natural logarithm, and limits. A weak penalty draws constants that
# the tables do not determine to the ordinary value.
GEMM_PRIORS = {"efficiency": (0.9, 0.3, 0.3, 1), "prologue_k": (128, 1, 32, 1000), "epilogue_clocks": (400, 1, 40, 4000),
               "load_bytes_per_clock": (80, 0.5, 16, 128), "memory_efficiency": (0.85, 0.2, 0.5, 0.97),
               "wave_loss": (0.3, 1, 0.05, 1), "throttle": (0.15, 0.7, 0.002, 0.6), "throttle_ms": (3, 0.7, 0.3, 20),
               "quantise_us_per_m": (1, 3, 0.05, 8)}


def read_table(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    numbers = [re.fullmatch(r"\d+(\.\d+)?(e-?\d+)?", cell) for cell in rows[0]]
    return {name: np.array(cells, float if number else str) for name, cells, number in zip(names, zip(*rows), numbers)}


def tables_by_gpu(paths, column):
    """Tables that have that column, by the catalog's name of their GPU."""
    words = rows_of(MEASURED / "words.csv")
    tables = map(read_table, (path for path in paths if not path.endswith(".json")))
    found = {normal(words, "gpu", table["device"][0]): table for table in tables if column in table}
    if not found or set(found) - {gpu for gpus in ARCHITECTURES for gpu in gpus}:
        sys.exit(f"{sys.argv[0]}: tables with a column {column} of known GPUs are needed, not of {list(found)}")
    return found


def part_of(table, rows):
    return {name: column[rows] for name, column in table.items()}


def drawn(rows, count, seed):
    """At most that many of the rows, the same ones each time."""
    return rows if len(rows) <= count else rows[np.random.RandomState(seed).choice(len(rows), count, replace=False)]


@functools.lru_cache(None)
def catalog_value(gpu, key, default=None):
    text = (MEASURED.parent / "catalog" / "gpus" / f"{gpu}.yaml").read_text(encoding="utf-8")
    found = re.search(rf"^  {key}: {{value: ([^,]+),", text, re.MULTILINE)
    if found:
        return float(found[1])
    parent = re.search(r"^constants_of: (\w+)", text, re.MULTILINE)
    return catalog_value(parent[1], key, default) if parent else default


def peak_tflops(gpu, catalog_format):
    key, ratio = {"bf16": ("matrix_tflops", 1), "nvfp4": ("fp4_tflops", 4)}.get(catalog_format, ("fp8_tflops", 2))
    return catalog_value(gpu, key) or ratio * catalog_value(gpu, "matrix_tflops")


def print_constants(values, source, certainty="fitted"):
    for key, value in values.items():
        print(f'  {key}: {{value: {value}, certainty: {certainty}, source: "{source}"}}')


def print_errors(name, modelled, measured):
    error = 100 * (modelled / measured - 1)[measured >= LONG_US]
    print(f"# {name}: {len(error)} rows, error % mean {abs(error).mean():.2f} median {np.median(abs(error)):.2f} "
          f"bias {error.mean():+.2f} 95th {np.quantile(abs(error), 0.95):.1f}", flush=True)


def fit(gpus, shared, own, priors, rows, rates, starts, weight, evaluations):
    """Constants by GPU with the least mean |ln(modelled / measured)|. Of each GPU, rows hold a function of its constants,
    its measured times and their weights. Of the rates that `rates` returns, a newer GPU's must not be lower."""
    names = [(None, name) for name in shared] + [(gpu, name) for gpu in gpus for name in own]
    typical, spread, low, high = np.array([priors[name] for _, name in names], float).T
    typical, low, high = np.log(typical), np.log(low), np.log(high)
    def constants(logs):
        values = dict(zip(names, np.exp(logs)))
        return {gpu: {name: value for (owner, name), value in values.items() if owner in (None, gpu)} for gpu in gpus}
    def cost(logs):
        inside = np.clip(logs, low, high)
        each = constants(inside)
        total = sum(max(0, np.log(old / new)) for a, b in zip(gpus, gpus[1:])
                    for old, new in zip(rates(a, each[a]), rates(b, each[b])))
        for gpu in gpus:
            modelled, measured, weights = rows[gpu]
            total += np.average(abs(np.log(modelled(each[gpu]) / measured)), weights=weights) / len(gpus)
        return total + 0.1 * abs(logs - inside).sum() + weight * (((inside - typical) / spread) ** 2).sum() / len(gpus)

    # Nelder and Mead's method in three rounds, each with a new and smaller simplex.
    best = np.array([starts.get(name, value) for name, value in zip(names, typical)])
    for turn in range(3):
        sides = np.diag([0.3 * 0.6**turn * (1 if (i + turn) % 2 else -1) for i in range(len(best))])
        options = {"maxfev": evaluations, "xatol": 1e-4, "fatol": 1e-6, "adaptive": True,
                   "initial_simplex": np.vstack([best, best + sides])}
        best = np.clip(minimize(cost, best, method="Nelder-Mead", options=options).x, low, high)
    return constants(best)


class Gemms:
    """GEMMs of m x k and k x n elements. Every tile and split of K is a candidate, and the fastest is taken.

        filled = tiles * split / units;  waves = max(1, filled + wave_loss * (ceil(filled) - filled))
        loop   = waves * 2 tm tn (k / split + prologue_k) / (peak * efficiency / units)
        load   = waves * (tm + tn) (k / split) * element bytes / (load_bytes_per_clock * clock)
        memory = bytes / (bandwidth * memory_efficiency) + [split > 1] 8 split m n / (load_bytes_per_clock * clock * units)
        t      = (loop^4 + load^4 + memory^4)^(1/4) + waves * tm tn / 32768 * epilogue_clocks / clock * (split > 1 ? 2 : 1)
        burst  = t * (1 + throttle * t / (t + throttle_ms))
    """
    def __init__(self, gpu, form, tiles, max_split, n, k, bytes_moved, tile_rows, m=None):
        self.form, _, self.element, _, _ = FORMATS[form]
        self.clocks_per_us = catalog_value(gpu, "clock_ghz") * 1e3
        self.units = catalog_value(gpu, "compute_units")
        self.peak = peak_tflops(gpu, self.form) * 1e6 / self.units
        self.memory_rate = catalog_value(gpu, "memory_gb_per_s") * 1e3
        candidates = []
        for high, wide in (map(int, tile.split("x")) for tile in tiles.split("+")):
            blocks = tile_rows(high) * np.ceil(n / wide)
            for split in (s for s in (1, 2, 4, 8, 16) if s <= max_split):
                row = np.flatnonzero((split == 1) | (k >= 256 * split) & (blocks * split <= 2 * self.units))
                filled = blocks[row] * split / self.units
                spilled = 8 * split * (m * n)[row] if split > 1 else 0 * filled
                candidates.append([row, filled, np.ceil(filled) - filled, k[row] / split, bytes_moved[row], spilled,
                                   0 * filled + high * wide, 0 * filled + high + wide, 0 * filled + (2 if split > 1 else 1)])
        joined = np.concatenate([np.array(one) for one in candidates], axis=1)
        joined = joined[:, np.argsort(joined[0], kind="stable")]
        self.starts = np.searchsorted(joined[0], np.arange(len(n)))
        _, self.filled, self.idle, self.k, self.bytes, self.spilled, self.area, self.edges, self.writes = joined
    def us(self, c):
        load_rate = c["load_bytes_per_clock"] * self.clocks_per_us
        waves = np.maximum(1, self.filled + c["wave_loss"] * self.idle)
        loop = waves * 2 * self.area * (self.k + c["prologue_k"]) / (self.peak * c["efficiency"])
        load = waves * self.edges * self.k * self.element / load_rate
        memory = self.bytes / (self.memory_rate * c["memory_efficiency"]) + self.spilled / (load_rate * self.units)
        loop, load, memory = loop * loop, load * load, memory * memory
        epilogue = waves * self.area / 32768 * c["epilogue_clocks"] / self.clocks_per_us * self.writes
        t = np.minimum.reduceat(np.sqrt(np.sqrt(loop * loop + load * load + memory * memory)) + epilogue, self.starts)
        return t * (1 + c["throttle"] * t / (t + c["throttle_ms"] * 1e3))


def dense_model(gpu, form, table):
    """The tables' linear layers: a GEMM, its launch, and for 8 and 4 bits the quantisation of the left operand."""
    m, n, k = table["m"], table["n"], table["k"]
    element, max_split, fixed = FORMATS[form][2:]
    gemms = Gemms(gpu, form, OTHER_TILES.get((gpu, form), TILES), max_split, n, k, (m * k + n * k) * element + 2 * m * n,
                  lambda high: np.ceil(m / high), m)
    return lambda c: gemms.us(c) + LAUNCH_US + fixed + c.get("quantise_us_per_m", 0) * m * k * 1e-6


def fit_dense(gpus, form, tables):
    """Fits one number format on the GPUs of one architecture. Short rows count a quarter."""
    samples, rows, starts = {}, {}, {}
    for gpu in gpus:
        us = tables[gpu]["latency"] * 1e3
        of_format = tables[gpu]["gemm_dtype"] == form
        long, short = np.flatnonzero(of_format & (us >= 50)), np.flatnonzero(of_format & (us >= 10) & (us < 50))
        chosen = np.concatenate([drawn(long, 1500, 0), drawn(short, 500, 0)])
        sample, us = part_of(tables[gpu], chosen), us[chosen]
        rows[gpu] = (dense_model(gpu, form, sample), us, np.where(us >= 50, 1, 0.25))
        samples[gpu] = part_of(tables[gpu], long)
        # Rows of few columns and a large operand spend most of their time in its quantisation.
        narrow = (sample["n"] <= 256) & (sample["m"] * sample["k"] > 4e6)
        slope = (us - 10)[narrow] / (sample["m"] * sample["k"] * 1e-6)[narrow]
        starts[gpu, "quantise_us_per_m"] = np.log(np.median(slope) * 0.7)
    def rates(gpu, c):
        peak = peak_tflops(gpu, FORMATS[form][0]) * c["efficiency"]
        return (peak, peak / (1 + c["throttle"]), catalog_value(gpu, "memory_gb_per_s") * c["memory_efficiency"],
                1 / c.get("quantise_us_per_m", 1))

    shared = ["prologue_k", "epilogue_clocks", "load_bytes_per_clock", "wave_loss", "throttle_ms"]
    own = ["efficiency", "memory_efficiency", "throttle"] + (["quantise_us_per_m"] if form != "bfloat16" else [])
    return samples, fit(gpus, shared, own, GEMM_PRIORS, rows, rates, starts, 0.0012, 1600)


def print_dense(gpu, form, sample, constants):
    name, prefix, _, max_split, fixed = FORMATS[form]
    print_errors(f"{gpu} {name} GEMM", dense_model(gpu, form, sample)(constants), sample["latency"] * 1e3)
    values = {key: float(f"{constants[key]:.4g}") for key in COLUMNS if key in constants}
    tiles = OTHER_TILES.get((gpu, form), TILES)
    if prefix:
        source = f"fitted to GEMMs of {COLLECTOR} (TensorRT-LLM {sample['version'][0]}, cuBLAS) by script/fit_kernels.py"
        print_constants({prefix + key: value for key, value in values.items() if key != "quantise_us_per_m"}, source)
        print_constants({prefix + "tiles": tiles, prefix + "max_split": max_split},
                        "kernels of CUTLASS and cuBLAS, as the fit of gemm_efficiency takes them", "read")
    values = {**values, "tiles": tiles, "max_split": max_split, "fixed_us": fixed}
    return ",".join([gpu, name, "gemm", *(str(values.get(column, 0)) for column in COLUMNS)])


def gemm(paths):
    tables, operators = tables_by_gpu(paths, "gemm_dtype"), []
    for form in FORMATS:
        for architecture in ARCHITECTURES:
            gpus = [gpu for gpu in architecture if form in tables.get(gpu, {"gemm_dtype": []})["gemm_dtype"]]
            if gpus:
                samples, constants = fit_dense(gpus, form, tables)
                operators += [print_dense(gpu, form, samples[gpu], constants[gpu]) for gpu in gpus]
    print("\n".join(operators))


# Of each constant of the tables' attention operator: a start and limits.
ATTENTION = {"tile_us": (1.2, 0, 10), "wide_tile_us": (1.2, 0, 10), "window_us": (0.2, 0, 10), "fixed_us": (15, 3, 40),
             "fixed_latent_us": (20, 3, 45), "vector_ops": (4, 0, 20), "matrix_efficiency": (0.6, 0.1, 1),
             "preparation_efficiency": (0.8, 0.3, 0.95)}
# The A100's table has one width and no windows, so that two of its constants are set.
AMPERE = {**ATTENTION, "vector_ops": (4, 3.999, 4.001), "window_us": (5e-7, 0, 1e-6), "tile_us": (1.2, 0.3, 10)}
DECIMALS = {"matrix_efficiency": 3, "vector_ops": 2, "tile_us": 3, "wide_tile_us": 3, "window_us": 3, "fixed_us": 1,
            "fixed_latent_us": 1, "preparation_efficiency": 3}  # of each column of attention_operators.csv
TRAINED = {"tile_us": 0.5, "wide_tile_us": 0.7, "window_us": 0}  # kernels for training, see attention.cpp
# H100: TFLOP/s of cuDNN and FlashAttention 2 at 512, 1024, ... 16384 tokens, 16384 of them in all, with heads of that width
# in a model of width 2048. Read by machine from the charts of Shah et al. 2024 (FlashAttention-3), figures 5 and 6.
CHARTS = [("forward", False, 64, (335, 373, 395, 408, 412, 413), (282, 306, 318, 321, 322, 324)),
          ("forward", False, 128, (497, 574, 617, 609, 600, 595), (309, 350, 362, 368, 370, 370)),
          ("forward", False, 256, (470, 546, 580, 581, 580, 581), (275, 313, 321, 323, 324, 326)),
          ("forward", True, 64, (225, 288, 334, 363, 379, 388), (180, 229, 262, 284, 295, 299)),
          ("forward", True, 128, (315, 410, 484, 518, 529, 539), (191, 260, 298, 319, 333, 335)),
          ("forward", True, 256, (308, 391, 450, 483, 497, 509), (208, 251, 278, 293, 297, 298)),
          ("backward", False, 64, (266, 348, 395, 417, 432, 433), (198, 238, 264, 279, 287, 291)),
          ("backward", False, 128, (305, 408, 465, 499, 518, 516), (214, 260, 291, 310, 318, 322))]
# SimuMax: the GPU, the library, the least time of a forward kernel that hides the gaps between kernels in its traces.
SYSTEMS = {"a100_pcie_bf16": ("a100_pcie_80", "flash2", 300), "b200_bf16_ceperm": ("b200_hgx", "cudnn", 150)}


def attention_tiles(s, tile, step):
    """Tiles of all thread blocks of a head, of the longest one, and the number of blocks."""
    blocks, whole = np.ceil(s["S"] / tile), np.ceil(s["S"] / step)
    longest = np.where(s["W"] < s["S"], np.minimum(whole, 1 + (s["W"] + tile - np.minimum(tile, step)) / step), whole)
    # Blocks but the last that the window does not cut; with wide tiles, several of them have equally many tiles.
    early = np.minimum(blocks - 1, np.floor(longest * step / tile))
    wide, narrow = np.maximum(step / tile, 1), np.maximum(tile / step, 1)
    groups = np.floor(early / wide)
    counted = np.where(wide > 1, wide * groups * (groups + 1) / 2 + (early - groups * wide) * (groups + 1),
                       narrow * early * (early + 1) / 2)
    masked = counted + (blocks - early) * longest
    return np.where(s["causal"], masked, whole * blocks), longest, blocks


def blocks_us(gpu, heads, tiles, flops, pairs, share, vector_ops, fp8, block_us, tail):
    """Blocks spread over the units, and the longest may be the last. A tile's matrix products and softmax overlap."""
    (every, longest, blocks), units = tiles, catalog_value(gpu, "compute_units")
    matrix = flops / (peak_tflops(gpu, "fp8" if fp8 else "bf16") * 1e6 / units * share)
    clocks = 1 / catalog_value(gpu, "exp_per_clock", 16) + vector_ops / 128
    softmax = pairs * clocks / (catalog_value(gpu, "clock_ghz") * 1e3)
    tile = np.maximum(matrix, softmax) + 0.2 * np.minimum(matrix, softmax)
    last = longest * tile + block_us
    return np.maximum(heads * (every * tile + blocks * block_us) / units + tail * last * (1 - 1 / units), last)


def stream_us(gpu, moved, efficiency=None):
    share = efficiency or catalog_value(gpu, "memory_efficiency", 0.85)
    return moved / (catalog_value(gpu, "memory_gb_per_s") * 1e3 * share)


def forward_us(gpu, s, fp8, c, latent=1):
    """Blocks of 64 queries walk over tiles of keys. B samples, S tokens, H heads, K of keys, widths d, dv, window W:

        us = max(blocks over units + the longest block, bytes / (bandwidth * share))
        block = its tiles + tile_us + wide_tile_us (d + dv) / 256 + [window] window_us
        tile = max(matrix, softmax) + 0.2 min(matrix, softmax)
    """
    element, widths = 1 if fp8 else 2, s["d"] + s["dv"]
    step = catalog_value(gpu, "attention_tile_kib", 32) * 1024 / (np.maximum(s["d"], s["dv"]) * element)
    step = np.clip(2.0 ** np.floor(np.log2(step)), 32, 256)
    block = (c["tile_us"] + c["wide_tile_us"] * widths / 256) * latent + c["window_us"] * (s["W"] < s["S"])
    us = blocks_us(gpu, s["B"] * s["H"], attention_tiles(s, 64, step), 128 * step * widths, 64 * step,
                   c["matrix_efficiency"], c["vector_ops"], fp8, block, 1)
    moved = s["B"] * s["S"] * (s["H"] + s["K"]) * widths * element
    return np.maximum(us, stream_us(gpu, moved, c.get("preparation_efficiency")))


def backward_us(gpu, s, efficiency):
    """Blocks of 128 keys walk over tiles of 128 queries, after and before kernels that only move bytes."""
    wide = np.maximum(s["d"], s["dv"])
    us = blocks_us(gpu, s["B"] * s["H"], attention_tiles(s, 128, 128), 2 * 128 * 128 * (3 * s["d"] + 2 * wide), 128 * 128,
                   efficiency, 6, False, 2, 0.2)
    moved = s["H"] * (4 * wide + 10 * s["d"]) + (s["K"] < s["H"]) * (4 * s["H"] + 2 * s["K"]) * (s["d"] + wide)
    return us + stream_us(gpu, s["B"] * s["S"] * moved)


def operator_us(gpu, s, fp8, latent, c):
    """The tables' operator: its kernel, and those before it that rotate, quantise and write the cache."""
    read = 2 * s["B"] * s["S"] * (s["H"] * s["d"] + s["K"] * (s["d"] + s["dv"]))
    latent_moved = s["B"] * s["S"] * (384 * s["H"] + 2304) + (1.5 * read if fp8 else 0)
    moved = latent_moved if latent else read * (1.5 if fp8 else 2)
    return (c["fixed_latent_us" if latent else "fixed_us"] + forward_us(gpu, s, fp8, c, 0.7 if latent else 1)
            + stream_us(gpu, moved, c["preparation_efficiency"]))


def attention_rows(gpu, table, fp8):
    """Shapes and times of the rows from 50 us of one number format."""
    rows = (table["kv_cache_dtype"] == "fp8") == fp8
    if "attn_dtype" in table:
        rows &= (table["kernel_source"] == "torch_flow") & ((table["attn_dtype"] == "fp8") == fp8)
    t = part_of(table, np.flatnonzero(rows & (table["latency"] * 1e3 >= LONG_US)))
    none, window = 0 * t["isl"], t.get("window_size", 0 * t["isl"])
    return {"B": t["batch_size"], "S": t["isl"], "H": t["num_heads"], "K": t.get("num_key_value_heads", t["num_heads"]),
            "W": np.where(window > 0, window, t["isl"]), "causal": none == 0, "us": t["latency"] * 1e3,
            "d": t.get("head_dim", none + 192), "dv": t.get("head_dim", none + 128)}


def fit_operators(gpus, fp8, rows):
    """Constants by GPU. They are shared, but for those of matrix units and exponentials that differ between GPUs."""
    limits = AMPERE if gpus == ARCHITECTURES[0] else ATTENTION
    def key(gpu, name):
        exponentials = catalog_value(gpu, "exp_per_clock", 16)
        return name, {"matrix_efficiency": (catalog_value(gpu, "matrix_tflops"), exponentials),
                      "vector_ops": exponentials}.get(name)

    keys = list(dict.fromkeys(key(gpu, name) for name in limits for gpu in gpus))
    start, low, high = np.array([limits[name] for name, _ in keys], float).T
    samples = [(gpu, latent, part_of(s, drawn(np.arange(len(s["us"])), 625 if latent else 2500, 1)))
               for gpu in gpus for latent, s in enumerate(rows[gpu])]
    def constants(values):
        found = dict(zip(keys, values))
        return {gpu: {name: found[key(gpu, name)] for name in limits} for gpu in gpus}
    def residuals(values):
        each = constants(values)
        return np.concatenate([np.log(operator_us(gpu, s, fp8, latent, each[gpu]) / s["us"]) for gpu, latent, s in samples])

    return constants(least_squares(residuals, start, bounds=(low, high), loss="soft_l1", f_scale=0.1, x_scale=high - low).x)


def chart_rows():
    for direction, causal, width, *libraries in CHARTS:
        for library, rates in zip(("cudnn", "flash2"), libraries):
            for tokens, rate in zip(2.0 ** np.arange(9, 15), rates):
                products = (2 if causal else 4) * (2.5 if direction == "backward" else 1)
                shape = (16384 / tokens, tokens, tokens, 2048 / width, 2048 / width, width, width, causal)
                yield ("h100_sxm", library, direction), (*shape, products * 16384 * tokens * 2048 / rate / 1e6)


def simumax_rows(path):
    """SimuMax counts the FLOPs of all pairs, of causal kernels too; FlashAttention 2 pads values to the width of keys."""
    with open(path, encoding="utf-8") as file:
        system = json.load(file)
    gpu, library, floor = SYSTEMS[system["sys_name"]]
    for direction, name, products in (("forward", "sdp_fwd", 2), ("backward", "sdp_bwd", 5)):
        measured = system["accelerator"]["op"][name]
        for shape, efficiency in measured["accurate_efficient_factor"].items():
            batch, tokens, heads, kv_heads, d, dv = (int(number) for number in re.findall(r"=(\d+)", shape))
            us = products * batch * tokens**2 * heads * (d + dv) / (measured["tflops"] * 1e6 * efficiency)
            if direction == "backward" or us > floor and tokens < 131072:
                dv = max(d, dv) if library == "flash2" else dv
                yield (gpu, library, direction), (batch, tokens, tokens, heads, kv_heads, d, dv, True, us)


def fit_training_kernels(paths):
    """Fits the one share of the matrix peak of each library, with launches of 5 us (forward) and 10 us (backward)."""
    found = {}
    for kernel, row in [*chart_rows(), *(row for path in paths for row in simumax_rows(path))]:
        found.setdefault(kernel, []).append(row)
    for (gpu, library, direction), rows in found.items():
        s = dict(zip(("B", "S", "W", "H", "K", "d", "dv", "causal", "us"), np.array(rows, float).T))
        set_to = {**TRAINED, "vector_ops": catalog_value(gpu, "attention_vector_ops", 4)}
        modelled = (lambda x: 10 + backward_us(gpu, s, x)) if direction == "backward" else (
            lambda x: 5 + forward_us(gpu, s, False, {**set_to, "matrix_efficiency": x}))
        share, = least_squares(lambda x: np.log(modelled(x) / s["us"]), 0.5, bounds=(0.1, 1), loss="soft_l1", f_scale=0.1).x
        print_errors(f"{gpu} {library} {direction}", modelled(share), s["us"])
        source = "SimuMax @4dcaae5" if gpu != "h100_sxm" else "Shah et al. 2024 (FlashAttention-3), figures 5 and 6"
        print_constants({f"{library}_{direction}_efficiency": round(share, 3)}, f"fitted to kernels in {source}")


def attention(paths):
    tables, latent, operators = tables_by_gpu(paths, "head_dim"), tables_by_gpu(paths, "mla_dtype"), []
    for architecture in ARCHITECTURES:
        gpus = [gpu for gpu in architecture if gpu in tables and gpu in latent]
        for fp8 in (False, True)[:2 if gpus and architecture != ARCHITECTURES[0] else len(gpus)]:
            rows = {gpu: [attention_rows(gpu, table[gpu], fp8) for table in (tables, latent)] for gpu in gpus}
            for gpu, c in fit_operators(gpus, fp8, rows).items():
                name = "fp8" if fp8 else "bf16"
                for is_latent, s in enumerate(rows[gpu]):
                    print_errors(f"{gpu} {name} {'latent ' if is_latent else ''}attention",
                                 operator_us(gpu, s, fp8, is_latent, c), s["us"])
                values = {key: round(c[key], decimals) for key, decimals in DECIMALS.items()}
                if not fp8 and gpu != "a100_80":
                    print_constants({"attention_vector_ops": values["vector_ops"]}, f"fitted to attention of {COLLECTOR}")
                operators.append(",".join([gpu, name, *map(str, values.values())]))
    fit_training_kernels([path for path in paths if path.endswith(".json")])
    print("\n".join(operators))


OTHER_BANDWIDTHS = {"Tesla P100-PCIE-16GB": 732, "Tesla P4": 192, "Tesla T4": 320}  # GB/s; not in the catalog
ACCESSES = {"add": 3, "addu": 2, "div": 3, "divu": 2, "gelu": 2, "mul": 3, "mulu": 2, "pow": 3, "relu": 2, "tanh": 2}


def memory(paths):
    """us = PyTorch's dispatch + tensors read and written * 4 elements / (bandwidth * memory_efficiency)"""
    table, words = read_table(paths[0]), rows_of(MEASURED / "words.csv")
    for device in np.unique(table["device"]):
        t = part_of(table, np.flatnonzero((table["device"] == device) & np.isin(table["op"], list(ACCESSES))))
        moved, us = 4 * t["b"] * t["h"] * np.array([ACCESSES[op] for op in t["op"]]), t["latency_ms"] * 1e3
        gpu = normal(words, "gpu", device)
        rate = 1e3 * (OTHER_BANDWIDTHS.get(gpu) or catalog_value(gpu, "memory_gb_per_s"))
        fixed, share = least_squares(lambda x: np.log((x[0] + moved / (rate * x[1])) / us), [10, 0.85], loss="soft_l1",
                                     f_scale=0.05, bounds=([0, 0.3], [60, 1])).x
        print_errors(f"{gpu} element-wise, fixed {fixed:.1f} us", fixed + moved / (rate * share), us)
        print_constants({"memory_efficiency": round(share, 3)}, "element-wise kernels of NeuSight @6945927")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    fits = {"gemm": gemm, "attention": attention, "memory": memory}
    parser.add_argument("kernels", choices=fits)
    parser.add_argument("tables", nargs="+", metavar="TABLE")
    given = parser.parse_args()
    fits[given.kernels](given.tables)


if __name__ == "__main__":
    main()
