#!/usr/bin/python3
"""Reads published tables of layouts and makes experiments/measured/layouts.csv of them, in the form of training_steps.csv.

    script/read_layouts.py FOLDER [-o experiments/measured/layouts.csv]

Layouts of more than MAX_GPUS are left where they are, since all that comes with the program is simulated in minutes.
FOLDER holds simumax_b200.csv, and dgxc_steps.csv with the readmes that it names in dgxc_readmes. Layouts are in titles of
tables, in their columns and in the tables of the readmes. Rows then are as script/normalise_measured.py makes them.
"""

import argparse
import csv
import json
import pathlib
import re

import normalise_measured as measured

COLUMNS = ["id", "source", "year", "model", "params_b", "layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab", "seq_len",
           "gpu", "num_gpus", "gpus_per_node", "intra_bw_GBps", "inter_bw_GBps_per_gpu", "tp", "pp", "dp", "cp", "ep",
           "vpp_interleave", "sequence_parallel", "micro_batch", "global_batch", "recompute", "schedule", "zero_stage",
           "dtype", "measured_step_s", "notes", "strategy.zero_group", "strategy.recompute_modules", "stack.overlap_tensor",
           "stack.bias_activation_fusion", "stack.bias_dropout_fusion", "stack.overlap_transfers", "window",
           "rank_allocated_mib", "rank_reserved_mib"]

MAX_GPUS = 128

# Tokens of a sample of SQuAD, of which sequences are packed in fine-tuning (NeMo, recipes/llama3_8b.py, performance_mode=True:
# packed_sequence): a context of some 120 words, a question and an answer. A token attends to its own sample only, so on average
# to half of one: what a window of that length costs.
SAMPLE = 200

# 405B is trained with the tokenizer of GPT-2, as its readmes say.
# Sequences of the workloads, where the titles of their tables do not have them; the readmes' notes do.
WORKLOADS = {
    "nemotron__15b": {"model": "Nemotron4 15b", "seq_len": 4096},
    "nemotron__340b": {"model": "Nemotron4 340b", "seq_len": 4096},
    "llama3.1__8b": {"model": "Llama 3.1 8b", "seq_len": 8192},
    "llama3.1__70b": {"model": "Llama 3.1 70b", "seq_len": 8192},
    "llama3.1__405b": {"model": "Llama 3.1 405b", "seq_len": 8192, "vocab": 50257},
    "paxml__5b": {"model": "GPT3 5B", "seq_len": 2048},
    "paxml__175b": {"model": "GPT3 175B", "seq_len": 2048},
}


def rows_of(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def number(pattern, text, otherwise=None):
    found = re.search(pattern, text)
    return int(found[1]) if found else otherwise


def rank_memory(row):
    """Peaks of every rank. Cases with more micro-batches repeat those of the case with four, which was measured alone."""
    if row["memory_source_case"] != row["case"]:
        return {}
    peaks = sorted(json.loads(row["peak_memory_by_rank_mb"]).items(), key=lambda item: int(item[0]))
    return {f"rank_{what}_mib": "+".join(f"{peak[f'max_{what}_mb']:.1f}" for _, peak in peaks) for what in ("allocated", "reserved")}


def simumax_rows(folder):
    """Eight B200 with sequences of 4,096; a case has micro-batches of one sample, `mbc` of them for each replica."""
    for row in rows_of(folder / "simumax_b200.csv"):
        tp, pp, ep = (number(f"{kind}(\\d+)", row["parallel"], 1) for kind in ("tp", "pp", "ep"))
        cp = int(row["cp_size"] or 1)
        dp = 8 // (tp * pp * cp)
        shape = {"kv_heads": 16} if row["model"] == "llama3-405b" else {}  # run_pretrain_llama3.sh has 16 groups, not 8
        yield {"id": f"simumax_{row['case'].removesuffix('_cef')}", "source": "MooreThreads/SimuMax @4dcaae5, B200", "year": 2026,
               "model": row["model"], "layers": int(row["layer_num"]), "seq_len": number(r"seq(\d+)", row["case"], 4096),
               "gpu": "B200", "num_gpus": 8, "gpus_per_node": 8, "tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": ep,
               "vpp_interleave": int(row["vp_size"]), "sequence_parallel": int(tp > 1), "micro_batch": 1,
               "global_batch": int(row["mbc"]) * dp, "recompute": "none", "schedule": "1F1B", "zero_stage": "1", "dtype": "BF16",
               "measured_step_s": f"{float(row['real_ms']) / 1000:g}", **shape, **rank_memory(row)}


def readme_layouts(path):
    """The layouts in a readme's tables of GPUs, sizes and parallel dimensions, by (size, precision, GPUs)."""
    layouts, names, heading = {}, None, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or line.startswith("**"):
            heading = line.strip("#*: ")
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "GPUs" in cells and "TP" in cells:
            names = cells
        elif names and len(cells) == len(names) and cells[names.index("GPUs")].isdigit():
            row = dict(zip(names, cells))
            sizes = (row.get("Size", "").removesuffix("-Proxy"), heading if "Size" not in row else "")
            for precision in row.get("Precision", "BF16/FP8").split("/"):
                layouts[sizes[0] or sizes[1], precision, int(row["GPUs"])] = row
        elif not line.startswith("|"):
            names = None
    return layouts


def proxy_405b(gpus):
    """The rows of layers and of global batches under a title of the 405B tables, whose proxies are cut to fewer layers."""
    layers = {32: 7, 96: 21, 192: 42}.get(gpus, 126)
    batch = {32: 126, 96: 126, 192: 252, 576: 252, 1152: 504, 2304: 1008}[gpus]
    dp = batch // 63
    return {"layers": layers, "global_batch": batch, "pp": gpus // (8 * 2 * dp)} | ({"vpp_interleave": 1} if gpus == 32 else {})


def sharded(row, gpus):
    """maxtext/configure.sh: FSDP over all nodes, or over 16 from 64 nodes on. paxml/configure.sh: FSDP in a node (5B) or over
    16 (175B). Saved are the results that its policy names: MaxText's and 175B's save_qkv_out_proj those of the projections
    around attention, 5B's checkpoint_dots of XLA's products. Attention is a call of cuDNN and no product: it is run again."""
    group = number(r"FSDP=(\d+)", row["column"]) or (8 if row["workload"] == "paxml__5b" else 128)
    made = {"strategy.zero_group": group if group < gpus else ""}
    feed_forward = "mlp_act" if row["workload"] == "paxml__5b" else "mlp"
    return made | {"strategy.recompute_modules": f"core_attn+layernorm+{feed_forward}"}


# What nemotron's configurations set apart from those of Llama: no fused squared ReLU; 340B with selective recompute. That
# configure.sh overrides them: tensor parallelism overlaps in both (ub_tp_comm_overlap), and transfers in 340B.
NEMOTRON = {
    "nemotron__15b": {"stack.bias_activation_fusion": "false", "stack.bias_dropout_fusion": "false"},
    "nemotron__340b": {"stack.bias_activation_fusion": "false", "recompute": "selective"},
}


def titled(row, gpus):
    """The layout in a title such as "Llama 3.1 70b BF16 (TP=4, PP=4, CP=2, VP=5, MBS=1, GA=64)"."""
    title, column = row["table_title"], row["column"]
    made = {"tp": number(r"TP=(\d+)", title), "pp": number(r"PP=(\d+)", title), "cp": number(r"CP=(\d+)", title, 1),
            "vpp_interleave": number(r"VP=(\d+)", title, 1), "micro_batch": number(r"MBS=(\d+)", title),
            "global_batch": number(r"GBS=(\d+)", column)}
    if "FSDP" in title:
        made |= {"tp": 1, "pp": 1, "zero_stage": "3", "recompute": "none", **sharded(row, gpus)}
    if "405b" in title:
        made |= proxy_405b(gpus)
    if row["workload"].startswith("llama3_finetuning__8b"):
        made |= {"pp": 1, "micro_batch": 1}  # PP=41 is a misprint: the readme of v25.04 has PP 1 for the same times
    if row["workload"].startswith("llama3_finetuning__70b"):
        made |= {"micro_batch": 1}
    return made


def tabled(row, gpus, layouts):
    """The layout in a table of the readme, whose rows are sizes and numbers of GPUs."""
    size = number(r"(\d+)b ", row["table_title"])
    scheme = "LORA" if "lora" in row["table_title"].lower() else "SFT"
    found = next(layouts[key, row["precision"], gpus] for key in (f"{size}b", "H100", scheme, "Overview")
                 if (key, row["precision"], gpus) in layouts)
    value = lambda name: int(found[name]) if found.get(name, "NA").isdigit() else 1
    made = {"tp": value("TP"), "pp": value("PP"), "cp": value("CP"), "vpp_interleave": value("VP"),
            "micro_batch": value("MBS"), "global_batch": value("GBS"), "seq_len": value("SeqLen")}
    return made | ({"layers": value("Layers")} if "Layers" in found else {})


def dgxc_model(row):
    title = row["table_title"].lower()
    size = number(r"(\d+)b ", title)
    if row["workload"] in WORKLOADS:
        return WORKLOADS[row["workload"]]
    if "finetuning" in title:
        kind = "LoRA" if "lora" in title else "SFT"
        return {"model": f"Llama 3 {size}b {kind}", "seq_len": 4096, "window": SAMPLE // 2}
    if "maxtext" in title:
        return {"model": "Llama 2 70b", "seq_len": 4096} if "llama2" in title else {"model": "Llama 3 70b", "seq_len": 8192}
    return {"model": f"Llama 3.1 {size}b"}


def software(row):
    return "MaxText" if "maxtext" in row["workload"] else "Paxml" if "paxml" in row["workload"] else "NeMo"


def dgxc_rows(folder):
    for line, row in enumerate(rows_of(folder / "dgxc_steps.csv"), 2):
        gpus = int(row["gpus"])
        made = {"id": f"dgxc_{line - 1:03}", "source": f"NVIDIA/dgxc-benchmarking {software(row)} {row['first_tag']}",
                "year": 2024 if row["first_tag"].startswith("v24") else 2025, "gpu": row["gpu"], "num_gpus": gpus,
                "gpus_per_node": 8, "zero_stage": "1", "schedule": "1F1B", "dtype": row["precision"],
                "measured_step_s": row["step_s"], "notes": f"{row['table_title']}; {row['column']}"}
        made |= dgxc_model(row)
        layouts = readme_layouts(folder / "dgxc_readmes" / row["file"])
        made |= titled(row, gpus) if "(" in row["table_title"] else tabled(row, gpus, layouts)
        made |= NEMOTRON.get(row["workload"], {})
        made["dp"] = gpus // (made["tp"] * made["pp"] * made["cp"])
        if made["tp"] > 1:
            made["sequence_parallel"] = 1
        yield made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", default=str(measured.MEASURED / "layouts.csv"))
    given = parser.parse_args()
    blank = dict.fromkeys(COLUMNS, "")
    rows = [{name: str(text) if text is not None else "" for name, text in (blank | row).items()}
            for row in [*simumax_rows(given.folder), *dgxc_rows(given.folder)]]
    measured.write_normalised([row for row in rows if int(row["num_gpus"]) <= MAX_GPUS], given.output)


if __name__ == "__main__":
    main()
