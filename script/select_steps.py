#!/usr/bin/python3
"""Makes experiments/measured/steps_other.csv of docs/facts/steps.csv: steps of models that are no dense decoders. Those of images follow all others.

    script/select_steps.py [-o experiments/measured/steps_other.csv]

The table has the form of training_steps.csv. A row is left out if its layout is incomplete, or if its model has no file in
experiments/catalog/models and no shape below; what the layout leaves open is assumed as README.md there describes.
"""

import argparse
import csv
import pathlib

from compare_resnet import experiment_of, nic_gbps

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ["id", "source", "year", "model", "catalog_model", "seq_len", "gpu", "num_gpus", "gpus_per_node", "inter_bw_GBps_per_gpu", "tp", "pp", "dp", "cp", "ep",
           "strategy.etp", "vpp_interleave", "micro_batch", "global_batch", "recompute", "zero_stage", "strategy.zero_group", "strategy.recompute_modules",
           "strategy.empty_layers", "split", "strategy.stage_layers", "strategy.overlap_grad_reduce", "strategy.capacity_factor",
           "strategy.pad_to_capacity", "collectives.all_reduce", "sequence_parallel", "mtp_layers", "dtype", "measured_step_s",
           "family", "stack", "stack.cuda_graphs", "stack.overlap_tensor",
           "stack.overlap_parameters", "stack.attention", "stack.rope_fusion", "stack.router_fusion", "stack.reduce_in_16bit",
           "stack.bias_dropout_fusion", "stack.bias_activation_fusion", "stack.gradient_accumulation_fusion", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab", "experts", "experts_per_token",
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

# DGX Cloud's DeepSeek-V3 (v25.05.05, deepseek_v3/pretraining/launch.sh; NVIDIA/NeMo @7a8f1cc, scripts/performance/llm/
# pretrain_deepseek_v3.py, recipes/deepseek_v3.py, gpt/model/deepseek.py; Megatron-LM @7094270): pretrain_recipe() has one layer of
# multi-token prediction; 64 / pp layers a stage, but one and two fewer in the first and the last; experts drop and pad to
# their capacity; gradients in fp32; tensor parallelism not overlapped; rotary positions (apply_rope_fusion false) and
# router (whose fusion is younger) in kernels one by one.
DEEPSEEK = {"mtp_layers": 1, "split": "even", "recompute": "selective", "strategy.capacity_factor": 1, "strategy.pad_to_capacity": "true",
            "stack.overlap_tensor": "false", "stack.rope_fusion": "false", "stack.router_fusion": "false",
            "stack.reduce_in_16bit": "false"}

# Gradients of BERT and ResNet-50 are summed by the algorithm that the library chooses, which over thousands of GPUs is no ring.
# What MXNet's ResNet-50 runs stands in compare_resnet.py. Flux is that of NeMo @8cfedd7 with MLPerf's configurations.

# What the sources say of a GPU alone. DeepSeek-V3: Transformer Engine @bee4649, NeMo's pin, has no fused attention from
# compute capability 10.0 on if heads are wider than 128 (common/fused_attn/fused_attn.cpp), which these are with 192, and none of
# FlashAttention for keys and values of unequal widths (pytorch/dot_product_attention/utils.py), so that GB200 ran
# the unfused one and made it again; H100 has cuDNN's and makes the projections to heads again. Grok-1 on GB200 and Llama 4 in FP8 on
# H100 run as CUDA graphs (v25.05.05, grok1/launch.sh and llama4/launch.sh: CUDA_GRAPH), experts included, since
# they are padded to their capacity.
OF_GPU = {
    ("DeepSeek-V3 671B", "GB200", "bf16"): {"strategy.recompute_modules": "core_attn", "stack.attention": "unfused"},
    ("DeepSeek-V3 671B", "H100", "bf16"): {"strategy.recompute_modules": "mla_up_proj"},
    ("Grok-1 314B", "GB200", "bf16"): {"stack.cuda_graphs": "all"},
    ("Grok-1 314B", "GB200", "fp8"): {"stack.cuda_graphs": "all"},
    ("Llama-4 Maverick 400B", "H100", "fp8"): {"stack.cuda_graphs": "all"},
}

# What sources of a model say besides. DGX Cloud calls NeMo's recipe of Nemotron-H without performance_mode, which leaves out the
# overlap of tensor parallelism, and with NVTE_FUSED_ATTN=0 (v25.05.05, nemotronh; NVIDIA/NeMo @7a8f1cc, recipes/nemotronh_56b.py);
# the card of DeepSeek-V3 has 61 layers on 32 stages of two. Cards of Megatron-Bridge @067f987: Nemotron 3 Super
# (recipes/nemotronh/h100/nemotron_3_super.py) overlaps neither reductions nor gathers; Qwen3.6 35B-A3B
# (recipes/qwen_vl/h100/qwen35_vl.py) has 16 and 24 layers on its stages, does not overlap either, and runs all but experts as
# CUDA graphs; Qwen3.8 27B (recipes/qwen_vl/gb200/qwen35_vl.py) has no sequence parallelism, no overlap and no fused rotation.
BESIDES = {
    "DeepSeek-V3 671B": DEEPSEEK,
    "nemotron-3-super-120b-a12b": {"strategy.overlap_grad_reduce": "false", "stack.overlap_parameters": "false"},
    "qwen3.6-35b-a3b": {"split": "even", "strategy.stage_layers": "16+24", "strategy.overlap_grad_reduce": "false",
                        "stack.overlap_parameters": "false", "stack.cuda_graphs": "all_but_experts", "stack.rope_fusion": "false"},
    "qwen3.8-27b": {"sequence_parallel": 0, "strategy.overlap_grad_reduce": "false", "stack.overlap_parameters": "false",
                    "stack.overlap_tensor": "false", "stack.rope_fusion": "false"},
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


def stage_layers(row):
    """The layers on each of DeepSeek-V3's stages, as pretrain_deepseek_v3.py sets them."""
    stages = int(row["pp"])
    even = 64 // stages
    return "+".join(str(count) for count in [even - 1] + [even] * (stages - 2) + [even - 2])


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
        "family": f"{family} {row['gpu'].split('_')[0]}", "stack": stack, "stack.cuda_graphs": "all" if bert else "",
        "collectives.all_reduce": "auto" if bert else "", "notes": row["notes"].split(";")[0],
    }
    if modules_of(row):
        result |= {"recompute": "selective", "strategy.recompute_modules": modules_of(row)}
    if row["model"].startswith("Grok"):
        result |= GROK
    if row["model"] == "DeepSeek-V3 671B":
        result["strategy.stage_layers"] = stage_layers(row)
    return result | BESIDES.get(row["model"], {}) | OF_GPU.get((row["model"], result["gpu"].split()[0], result["dtype"]), {})


def is_image_step(row):
    """ResNet-50 by MXNet as compare_resnet.py takes it, and MLPerf's Flux, whose layouts are complete."""
    if row["family"] == "diffusion":
        return row["model"].startswith("Flux") and row["complete"].startswith("yes")
    return "TensorFlow" not in row["source"] and experiment_of(row) is not None


def image_step(row, number):
    gpus, per_node = int(row["gpus"]), min(int(row["gpus_per_node"]), int(row["gpus"]))
    result = {
        "id": f"{'flux' if row['family'] == 'diffusion' else 'resnet'}_{number:04d}", "source": row["source"], "year": year_of(row),
        "model": row["model"], "num_gpus": gpus, "gpus_per_node": per_node, "tp": row["tp"], "pp": 1, "dp": gpus // int(row["tp"]), "cp": 1,
        "ep": 1, "micro_batch": row["mbs"], "global_batch": int(row["mbs"]) * gpus // int(row["tp"]), "recompute": "none",
        "measured_step_s": row["step_s"], "notes": row["notes"].split(";")[0],
    }
    if row["family"] == "diffusion":
        return result | {
            "catalog_model": "flux.1-schnell", "gpu": row["gpu"], "zero_stage": 1, "sequence_parallel": 0, "dtype": row["precision"],
            "family": f"MLPerf Flux {row['gpu']}", "stack": "megatron-bridge-blackwell", "stack.overlap_tensor": "false",
            "stack.bias_dropout_fusion": "false", "stack.bias_activation_fusion": "false", "stack.gradient_accumulation_fusion": "false",
        }
    gpu, document = experiment_of(row)
    names = {"h100_pcie": "H100 PCIe", "a100_pcie_80": "A100 80GB PCIe", "a100_80": "A100"}
    return result | {
        "catalog_model": "resnet-50-mlperf" if "resnet-50-mlperf" in document else "resnet-50", "gpu": names.get(gpu, row["gpu"]),
        "inter_bw_GBps_per_gpu": nic_gbps(row, gpus // per_node, per_node) / 8 if gpus > per_node else "", "zero_stage": 0,
        "strategy.overlap_grad_reduce": "false", "dtype": "fp16", "family": f"MLPerf ResNet-50 {names.get(gpu, row['gpu'])}",
        "stack": "mxnet", "collectives.all_reduce": "auto",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default=ROOT / "experiments/measured/steps_other.csv")
    output = parser.parse_args().output
    with open(ROOT / "docs/facts/steps.csv", newline="", encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    rows = [row for row in published if row["model"] in MODELS and is_packed_bert(row)]
    images = [row for row in published if row["family"] in ("resnet50", "diffusion") and is_image_step(row)]
    with open(output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(step(row, number) for number, row in enumerate(rows, 1))
        writer.writerows(image_step(row, number) for number, row in enumerate(images, len(rows) + 1))


if __name__ == "__main__":
    main()
