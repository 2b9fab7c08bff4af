#!/usr/bin/python3
"""Makes experiments/measured/steps_other.csv of docs/facts/steps.csv: steps of models that are no dense decoders.

    script/select_steps.py [-o experiments/measured/steps_other.csv]

The table has the form of training_steps.csv. A row is left out if its layout is incomplete, or if its model has no file in
experiments/catalog/models and no shape below; what the layout leaves open is assumed as README.md there describes.
"""

import argparse
import csv
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ["id", "source", "year", "model", "catalog_model", "seq_len", "gpu", "num_gpus", "gpus_per_node", "tp", "pp", "dp", "cp", "ep",
           "strategy.etp", "vpp_interleave", "micro_batch", "global_batch", "recompute", "zero_stage", "strategy.zero_group", "strategy.recompute_modules",
           "strategy.empty_layers", "split", "dtype", "measured_step_s",
           "family", "stack", "stack.cuda_graphs", "stack.overlap_tensor",
           "stack.overlap_parameters", "stack.attention", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab", "experts", "experts_per_token",
           "norm", "activation", "position", "tied_embeddings", "biases", "dropout", "included", "exclusion_reason", "notes"]

# Grok-1 is no model of the catalog: the sizes of its release, with GEGLU experts.
GROK = {"layers": 64, "hidden": 6144, "heads": 48, "kv_heads": 8, "head_dim": 128, "ffn_hidden": 32768, "vocab": 131072, "experts": 8,
        "experts_per_token": 2, "norm": "rms_norm", "activation": "geglu", "position": "rotary", "tied_embeddings": "true",
        "biases": "false", "dropout": "false"}

# Name in steps.csv: model of the catalog, family, stack, ZeRO, recompute. NeMo of container 25.02 and 25.04 sends tokens by an
# all-to-all; the cards of Megatron-Bridge name HybridEP. An empty recompute is that of the source, and assumed. MLPerf's BERT
# is launched as CUDA graphs, and its optimizer is sharded within a node (NVIDIA, bert, run_pretraining.py: --dwu-group-size).
MODELS = {
    "BERT-large (MLPerf phase 2)": ("bert-large-mlperf", "MLPerf BERT", "nemo-24.09", "1", "none"),
    "Nemotron-H 56B": ("nemotron-h-56b", "DGX Cloud hybrid", "nemo-24.09", "1", ""),
    "Llama-4 Maverick 400B": ("llama4-maverick", "DGX Cloud MoE", "megatron-bridge-moe-alltoall", "1", ""),
    "DeepSeek-V3 671B": ("deepseek-v3", "DGX Cloud MoE", "megatron-bridge-moe-alltoall", "1", ""),
    "Grok-1 314B": ("", "DGX Cloud MoE", "megatron-bridge-moe-alltoall", "1", ""),
    "nemotron-3-super-120b-a12b": ("nemotron3-super-120b-a12b", "Megatron-Bridge hybrid", "megatron-bridge-moe", "1", ""),
    "qwen3.6-35b-a3b": ("qwen3.5-35b-a3b", "Megatron-Bridge hybrid", "megatron-bridge-moe", "1", ""),
    "qwen3.8-27b": ("qwen3.5-27b", "Megatron-Bridge hybrid", "megatron-bridge", "1", "none"),
    "gpt-oss-120b": ("gpt-oss-120b", "Megatron-Bridge cards", "megatron-bridge-moe-alltoall-overlap", "1", ""),
    "deepseek-v3": ("deepseek-v3", "Megatron-Bridge cards", "megatron-bridge-moe-overlap", "1", ""),
}

# What sources of a model say besides. DGX Cloud calls NeMo's recipe of Nemotron-H without performance_mode, which leaves out the
# overlap of tensor parallelism, and with NVTE_FUSED_ATTN=0 (v25.05.05, nemotronh; NVIDIA/NeMo @7a8f1cc, recipes/nemotronh_56b.py);
# the card of DeepSeek-V3 has 61 layers on 32 stages of two.
BESIDES = {
    "Nemotron-H 56B": {"stack.overlap_tensor": "false", "stack.overlap_parameters": "false", "stack.attention": "flash2"},
    "deepseek-v3": {"strategy.empty_layers": "3", "split": "even"},
}

# Modules that a row says are recomputed. What a gated delta net's norm returns is none of ours, and left out.
MODULES = {"layernorm": "layernorm", "moe_act": "moe_act", "moe activation": "moe_act", "moe": "moe", "core_attn": "core_attn",
           "core attention": "core_attn", "mla_up_proj": "mla_up_proj", "mlp": "mlp"}


def modules_of(row):
    """The modules behind 'selective:', joined as a strategy has them."""
    if not row["recompute"].lower().startswith("selective:"):
        return ""
    named = row["recompute"].lower().split(":", 1)[1].split("(")[0]
    return "+".join(dict.fromkeys(MODULES[name.strip()] for name in named.split(",") if name.strip() in MODULES))


def is_packed_bert(row):
    """BERT whose rows hold two sequences each: without padding, unlike rows of one sequence, whose tokens vary."""
    return row["family"] != "bert" or "sequences per row 2" in row["notes"]


def year_of(row):
    versions = {"v1": 2022, "v2": 2022, "v3": 2023, "v4": 2024, "v5": 2025}
    for version, year in versions.items():
        if f"training_results_{version}" in row["source"]:
            return year
    return 2025


def step(row, number):
    name, family, stack, zero, recompute = MODELS[row["model"]]
    bert = row["family"] == "bert"
    batch = int(row["mbs"]) * int(row["grad_accum"]) * int(row["dp"]) if bert else int(row["gbs"])
    result = {
        "id": f"{row['family']}_{number:04d}", "source": row["source"], "year": year_of(row), "model": row["model"],
        "catalog_model": name, "seq_len": "" if bert else row["seq_or_image"].split()[0], "gpu": row["gpu"].replace("_", " "),
        "num_gpus": row["gpus"], "gpus_per_node": row["gpus_per_node"], "tp": row["tp"] or 1, "pp": row["pp"] or 1, "dp": row["dp"],
        "cp": row["cp"] or 1, "ep": row["ep"] or 1, "strategy.etp": row["etp"], "vpp_interleave": row["vp"],
        "micro_batch": row["mbs"], "global_batch": batch, "recompute": recompute, "zero_stage": zero,
        "strategy.zero_group": row["gpus_per_node"] if bert and int(row["dp"]) > int(row["gpus_per_node"]) else "",
        "dtype": "fp8" if "fp8" in row["precision"] else row["precision"].split()[0], "measured_step_s": row["step_s"],
        "family": f"{family} {row['gpu'].split('_')[0]}", "stack": stack, "stack.cuda_graphs": "all" if bert else "", "notes": row["notes"].split(";")[0],
    }
    if modules_of(row):
        result |= {"recompute": "selective", "strategy.recompute_modules": modules_of(row)}
    if row["model"].startswith("Grok"):
        result |= GROK
    return result | BESIDES.get(row["model"], {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default=ROOT / "experiments/measured/steps_other.csv")
    output = parser.parse_args().output
    with open(ROOT / "docs/facts/steps.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] in MODELS and is_packed_bert(row)]
    with open(output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(step(row, number) for number, row in enumerate(rows, 1))


if __name__ == "__main__":
    main()
