#!/usr/bin/python3
"""Work, traffic and rates of the measured kernels of docs/facts/scans.csv, and one efficiency a family and GPU generation.

Plain Python:  script/fit_scans.py [--rows]   (--rows prints every row; without it only the fits)
A time is modelled from the FLOPs F and bytes B that the kernels' source code asks for (scans.md):
  max      max(B / bandwidth, F / (e * peak))
  sum      B / bandwidth + F / (e * peak)
  kernels  sum over the kernels of max(B_k / bandwidth, F_k / (e * peak)), the bandwidth at its full value
  kernels2 the same with a second constant: bandwidth * m
  half     kernels2 with m = 0.5 (what SSD on Hopper gives), so e alone is fitted
  serial   sum + L * chunks of the longest sequence, a forward counting once and a backward twice (the states are
           computed chunk after chunk, in the backward pass forwards and back)
The constants minimise the mean of (ln(model / measured))^2 over the rows with a name in the column `fit`, each source
weighing the same, and in a source each GPU and pass. Peaks are dense bf16 and HBM figures of the data sheets.
"""
import csv
import math
import os
import sys

PEAKS = {"A100": (312e12, 2.039e12), "H100": (989e12, 3.35e12), "H800": (989e12, 3.35e12), "H200": (989e12, 4.8e12),
         "B200": (2250e12, 8e12), "GB200": (2500e12, 8e12)}
GENERATION = {"A100": "Ampere", "H100": "Hopper", "H800": "Hopper", "H200": "Hopper", "B200": "Blackwell",
              "GB200": "Blackwell"}


def convolution(tokens, channels, direction):
    """Depthwise causal convolution of width 4, bf16."""
    flops = 8 * tokens * channels * (2 if direction == "bwd" else 1)
    return ("causal_conv1d_" + direction, flops, (6 if direction == "bwd" else 4) * tokens * channels)


def ssd(tokens, h, g, n, p, q, direction):
    """(kernel, FLOPs, bytes) of mamba_ssm's ssd_combined.py; x, B, C, out in bf16."""
    chunks = math.ceil(tokens / q)
    x, bc, th = 2 * tokens * h * p, 2 * tokens * g * n, tokens * h
    cb, s = 4 * tokens * q * g, chunks * h * p * n
    to_state, inside, products = 2 * tokens * h * p * n, tokens * h * p * q, 2 * tokens * g * q * n
    if direction == "fwd":
        return [("cumsum", 0, 10 * th),
                ("_chunk_state_fwd", to_state, x + bc + 8 * th + 4 * s),
                ("_state_passing_fwd", 0, 6 * s),
                ("_bmm_chunk_fwd", products, 2 * bc + cb),
                ("_chunk_scan_fwd", to_state + inside, 2 * x + cb + bc + 8 * th + 2 * s)]
    return [("cumsum", 0, 14 * th),
            ("_chunk_state_fwd", to_state, x + bc + 8 * th + 4 * s),
            ("_state_passing_fwd", 0, 8 * s),
            ("_bmm_chunk_fwd", products, 2 * bc + cb),
            ("_chunk_scan_bwd_dstates", to_state, x + bc + 4 * th + 4 * s),
            ("_state_passing_bwd", 0, 12 * s),
            ("_chunk_scan_chunk_state_bwd_dx", to_state + inside, 3 * x + cb + bc + 12 * th + 2 * s),
            ("_chunk_state_bwd_db", to_state, x + 3 * bc + 8 * th + 2 * s),
            ("_chunk_scan_bwd_dc", to_state, x + 3 * bc + 4 * th + 2 * s),
            ("_chunk_scan_bwd_dcb", inside, 2 * x + cb + 8 * th),
            ("_bmm_chunk_bwd", 2 * products, 2 * cb + 8 * bc),
            ("_chunk_scan_bwd_ddAcs_stable", inside, 2 * x + cb + 12 * th),
            ("cumsum_bwd", 0, 20 * th)]


def delta(tokens, hv, hk, k, v, c, direction):
    """(kernel, FLOPs, bytes) of flash-linear-attention's chunk_gated_delta_rule; all of it in bf16 but A before solve."""
    n = math.ceil(tokens / c) * hv
    ck, cv, kv, c3 = 2 * n * c * c * k, 2 * n * c * c * v, 2 * n * c * k * v, 2 * n * c**3
    key, wide, val = 2 * tokens * hk * k, 2 * tokens * hv * k, 2 * tokens * hv * v
    th, a, h = tokens * hv, tokens * hv * c, 2 * n * k * v
    again = [("recompute_w_u", ck + cv, key + val + 2 * a + wide + val + 6 * th),
             ("chunk_fwd_h", 2 * kv, key + wide + 2 * val + h + 4 * th)]
    if direction == "fwd":
        return [("cumsum", 0, 8 * th), ("kkt", ck, key + 4 * a + 6 * th), ("solve_tril", c3 / 3, 6 * a)] + again + [
            ("chunk_fwd_o", kv + ck + cv, 2 * key + 2 * val + h + 4 * th)]
    return again + [
        ("bwd_dv_local", ck + cv, 2 * key + 2 * val + 4 * th),
        ("bwd_dhu", 3 * kv, 2 * key + wide + 3 * val + h + 4 * th),
        ("bwd_dqkwg", 3 * kv + cv + 3 * ck, 2 * key + wide + 3 * val + 2 * h + 3 * wide + 8 * th),
        ("prepare_wy_repr_bwd", 5 * ck + 2 * cv + 2 * c3, key + 2 * a + wide + val * 3 + wide + 14 * th),
        ("sums and cumsum", 0, 3 * wide + (2 * wide + 2 * key if hk != hv else 0) + 12 * th)]


def linear(tokens, h, k, v, c, direction):
    """Chunked linear attention, retention and simple GLA; for GLA and the like the gates of every channel are left out."""
    n = math.ceil(tokens / c) * h
    ck, cv, kv = 2 * n * c * c * k, 2 * n * c * c * v, 2 * n * c * k * v
    key, val, s = 2 * tokens * h * k, 2 * tokens * h * v, 2 * n * k * v
    fwd_h = ("chunk_fwd_h", kv, key + val + s)
    if direction == "fwd":
        return [fwd_h, ("chunk_fwd_o", kv + ck + cv, 2 * key + 2 * val + s)]
    return [fwd_h, ("chunk_bwd_dh", kv, key + val + s), ("bwd_dqk", 2 * kv + 3 * ck + cv, 4 * key + 2 * val + 2 * s),
            ("bwd_dv", kv + ck + cv, 2 * key + 2 * val + s)]


PARTS = {"DeltaNet chunk_fwd_h": "chunk_fwd_h", "DeltaNet chunk_fwd_o": "chunk_fwd_o", "DeltaNet w_u": "recompute_w_u",
         "DeltaNet kkt": "kkt", "DeltaNet inverse": "solve_tril", "chunk_scan_fwd (TileLang)": "_chunk_scan_fwd"}


def kernels_of(row):
    """The kernels a row timed, or None where its shape or its formula is not known."""
    size = {k: int(row[k]) if row[k] else None for k in ("batch", "sequence", "heads", "groups", "key_dim", "value_dim",
                                                        "chunk")}
    family, name = row["family"], row["kernel"]
    if family == "mixer" or size["batch"] is None:
        return None
    tokens = size["batch"] * size["sequence"]
    if family in ("conv", "norm"):
        if size["heads"] is None:
            return None
        if family == "norm":  # x, z, dout read; dx, dz written
            return [(name, 0, 10 * tokens * size["heads"] * size["value_dim"])]
        return [convolution(tokens, size["heads"] * size["value_dim"] + 2 * size["groups"] * size["key_dim"], row["pass"])]
    if None in size.values():
        return None
    h, g, n, p, q = (size[k] for k in ("heads", "groups", "key_dim", "value_dim", "chunk"))

    def of(direction):
        if family == "ssd":
            return ssd(tokens, h, g, n, p, q, direction)
        if family in ("gdn", "delta"):
            return delta(tokens, h, g, n, p, q, direction)
        return linear(tokens, h, n, p, q, direction)

    passes = {"fwd": ["fwd"], "bwd": ["bwd"], "fwd+bwd": ["fwd", "bwd"], "fwd twice+bwd": ["fwd", "fwd", "bwd"]}
    result = [kernel for direction in passes[row["pass"]] for kernel in of(direction)]
    wanted = PARTS.get(name, name)
    if any(k[0] == wanted for k in result):
        return [next(k for k in result if k[0] == wanted)]
    if name.startswith("DeltaNet"):
        return None
    if name.startswith(("convolution", "all SSM")):  # the backward pass computes the convolution again
        channels = h * p + 2 * g * n
        for direction in passes[row["pass"]]:
            result.append(convolution(tokens, channels, "fwd"))
            if direction == "bwd":
                result.append(convolution(tokens, channels, "bwd"))
    return result


def serial_chunks(row):
    """Chunks computed one after the other; None where the lengths of the sequences are not known."""
    if not row["longest"]:
        return None
    passes = {"fwd": 1, "bwd": 2, "fwd+bwd": 3, "fwd twice+bwd": 4}[row["pass"]]
    return passes * math.ceil(int(row["longest"]) / int(row["chunk"]))


def model(form, row, e, m=1.0):
    parts = row["parts"]
    peak, bandwidth = PEAKS[row["gpu"]]
    flops, moved = sum(k[1] for k in parts), sum(k[2] for k in parts)
    if form == "max":
        return max(moved / bandwidth, flops / (e * peak))
    if form == "sum":
        return moved / bandwidth + flops / (e * peak)
    if form == "serial":
        return moved / bandwidth + flops / (e * peak) + m * 1e-6 * serial_chunks(row)
    m = 0.5 if form == "half" else m
    return sum(max(k[2] / (m * bandwidth), k[1] / (e * peak)) for k in parts)


def loss(form, rows, e, m):
    by = {}
    for row in rows:
        group = by.setdefault(row["fit"], {}).setdefault((row["gpu"], row["pass"]), [])
        group.append(math.log(model(form, row, e, m) / row["seconds"]) ** 2)
    return sum(sum(sum(v) / len(v) for v in source.values()) / len(source) for source in by.values()) / len(by)


def fit(form, rows):
    """e and the second constant: m of kernels2, microseconds a chunk of serial, else 1."""
    if form not in ("kernels2", "serial"):
        return min((loss(form, rows, 0.005 * 1.02**i, 1.0), 0.005 * 1.02**i, 1.0) for i in range(270))[1:]
    seconds = [0.05 + 0.05 * i for i in range(20)] if form == "kernels2" else [0.1 * i for i in range(31)]
    return min((loss(form, rows, 0.01 * 1.06**i, m), 0.01 * 1.06**i, m) for i in range(80) for m in seconds)[1:]


def residuals(form, rows, e, m):
    return [model(form, r, e, m) / r["seconds"] - 1 for r in rows]


FAMILIES = {"ssd": "SSD", "gdn": "delta rule", "delta": "delta rule", "linear": "linear attention"}


def spread(values):
    mean = sum(values) / len(values)
    return "mean %+4.0f %%, from %+4.0f to %+4.0f %%" % (100 * mean, 100 * min(values), 100 * max(values))


def show(form, key, members, fits):
    sources = sorted({r["fit"] for r in members})
    e, m = fit(form, members)
    fits[key + (form,)] = e, m
    second = {"kernels2": " m %.2f" % m, "serial": " L %.1f us" % m}.get(form, "")
    print("  %-8s e %.3f%s  %d rows, %s" % (form, e, second, len(members), spread(residuals(form, members, e, m))))
    by = {}
    for r in members:
        by.setdefault((r["fit"], r["gpu"], r["pass"]), []).append(r)
    for group, some in sorted(by.items()):
        print("      %-10s %-5s %-13s %2d rows  %s" % (*group, len(some), spread(residuals(form, some, e, m))))
    if len(sources) == 1:
        return
    for source in sources:
        e, m = fit(form, [r for r in members if r["fit"] != source])
        own = [r for r in members if r["fit"] == source]
        second = {"kernels2": " m %.2f" % m, "serial": " L %.1f us" % m}.get(form, "")
        print("      without %-10s e %.3f%s -> its rows %s" % (source, e, second, spread(residuals(form, own, e, m))))


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../docs/facts/scans.csv"), newline="") as f:
        rows = list(csv.DictReader(f))
    for row in rows:
        row["seconds"] = float(row["time_us"]) / 1e6
        row["parts"] = kernels_of(row)
    groups = {}
    for row in rows:
        if row["fit"]:
            family = FAMILIES[row["family"]]
            groups.setdefault((family, GENERATION[row["gpu"]]), []).append(row)

    fits = {}
    print("Fits (e: share of the dense bf16 peak; m: share of the HBM bandwidth; L: of a chunk in a sequence)")
    for key, members in sorted(groups.items()):
        sources = sorted({r["fit"] for r in members})
        print("\n%s, %s: %d rows of %s" % (*key, len(members), ", ".join(sources)))
        # Where few heads leave most of the GPU idle, only the form with the serial part applies.
        wide = [r for r in members if int(r["heads"]) >= 32 and key[0] != "linear attention" or int(r["heads"]) >= 64]
        for form in ("max", "sum", "kernels", "kernels2", "half", "serial"):
            if form == "serial" and key[0] == "SSD":
                continue
            chosen = [r for r in members if serial_chunks(r)] if form == "serial" else wide or members
            show(form, key, chosen, fits)
    if "--rows" not in sys.argv:
        return
    print("\n%4s %-9s %-38s %-13s %-11s %6s %7s %4s %4s %9s %10s %9s %7s %7s %9s %9s %9s" %
          ("id", "fit", "kernel", "pass", "gpu", "batch", "seq", "h", "q", "us", "GFLOP", "MB", "TFLOP/s", "GB/s", "max us",
           "sum us", "half us"))
    for row in rows:
        head = "%4s %-9s %-38s %-13s %-11s %6s %7s %4s %4s %9.1f " % (
            row["id"], row["fit"] or "-", row["kernel"][:38], row["pass"], row["gpu"], row["batch"], row["sequence"],
            row["heads"], row["chunk"], 1e6 * row["seconds"])
        if row["parts"] is None:
            print(head + "(shape not stated)")
            continue
        flops, moved = sum(k[1] for k in row["parts"]), sum(k[2] for k in row["parts"])
        tail = "%10.1f %9.1f %7.1f %7.0f" % (flops / 1e9, moved / 1e6, flops / row["seconds"] / 1e12,
                                             moved / row["seconds"] / 1e9)
        key = (FAMILIES.get(row["family"]), GENERATION.get(row["gpu"]))
        if key + ("max",) in fits and row["family"] not in ("conv", "norm"):
            for form in ("max", "sum", "half"):
                e, m = fits[key + (form,)]
                tail += " %9.1f" % (1e6 * model(form, row, e, m))
        print(head + tail)


main()
