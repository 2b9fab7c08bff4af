#!/usr/bin/python3
"""Predicts published steps of reinforcement learning and throughputs of serving engines, and writes them beside each other.

    script/compare_rl.py [--program build/release/manyworlds] [--runs DIR] [steps|decoding]

Rows are those of docs/facts/rl_steps.csv and decoding.csv that the program can express (docs/facts/rl_predicted.md says
which, and what is assumed of them). Nothing is fitted. The tables of that page and docs/facts/rl_predicted.csv are written
anew; documents and answers stay in the folder of --runs, and answers that are there are not computed again.
"""

import argparse
import csv
import hashlib
import json
import math
import pathlib
import statistics
import subprocess
import sys

from readme_part import with_part

FACTS = pathlib.Path(__file__).resolve().parent.parent / "docs/facts"
PAGE, OUTPUT = FACTS / "rl_predicted.md", FACTS / "rl_predicted.csv"
FORMS = ("predicted_low", "predicted", "predicted_high")
COLUMNS = ("row_id", "quantity", "what", "published", *FORMS, "error_low_percent", "error_percent", "error_high_percent", "parts")
SIGMA = 0.5  # of the logarithms of lengths
PROMPT = 128  # tokens, where they are not printed: problems of OpenMathInstruct-2 with their template

# config.json of Qwen/Qwen3-32B, which the catalog does not have.
QWEN3_32B = ("{like: llama3-8b, layers: 64, hidden: 5120, heads: 64, kv_heads: 8, head_dim: 128, ffn_hidden: 25600, vocabulary: 151936, "
             "query_key_norm: true}")
# Name in the catalog, parameters, layers, heads of keys, their width: of decoders with keys and values in 16 bits.
MODELS = {
    "LLaMA-7B": ("llama2-7b", 6.738e9, 32, 32, 128), "LLaMA-70B": ("llama2-70b", 68.98e9, 80, 8, 128),
    "Llama-3.1-8B": ("llama3-8b", 8.03e9, 32, 8, 128), "Llama-3.1-70B": ("llama3-70b", 70.55e9, 80, 8, 128),
    "Mixtral-8x7B": ("mixtral-8x7b", 46.7e9, 32, 8, 128),
    "Llama-3.1-8B-Instruct": ("llama3-8b", 8.03e9, 32, 8, 128), "Qwen3-32B": (QWEN3_32B, 32.76e9, 64, 8, 128),
    "Qwen3-30B-A3B": ("qwen3-30b-a3b", 30.53e9, 48, 4, 128), "Qwen3-235B-A22B": ("qwen3-235b-a22b", 235.1e9, 94, 4, 128),
    "DeepSeek-V3": ("deepseek-v3", 671e9, 61, 1, 288),  # one vector of 576 for keys and values, on every rank
}
CLUSTERS = {"A100": ("dgx_a100_superpod", 8, 79.2), "H100": ("dgx_h100_superpod", 8, 79.1), "H200": ("dgx_h200_superpod", 8, 139.8),
            "GB200": ("gb200_nvl72_racks", 64, 173.0)}


class Program:
    def __init__(self, path, runs):
        self.path, self.runs = path, runs

    def answer(self, verb, document):
        """The JSON of `phases` or `run`, or None with a message where there is no prediction."""
        name = hashlib.sha256((verb + document).encode()).hexdigest()[:16]
        file, kept = self.runs / f"{name}.yaml", self.runs / f"{name}.json"
        if not kept.exists():
            file.write_text(document)
            words = ["--in-process", "-o", str(self.runs / name)] if verb == "phases" else []
            done = subprocess.run([self.path, verb, str(file), "--json", *words], capture_output=True, text=True)
            kept.write_text(done.stdout if done.stdout.startswith("{") else json.dumps({"refused": done.stderr.strip()}))
        told = json.loads(kept.read_text())
        return told


def cluster_of(gpu, gpus):
    name, per_node, memory = CLUSTERS[gpu.split("-")[0].split()[0]]
    per_node = min(gpus, per_node)
    return f"{{like: {name}, nodes: {gpus // per_node}, gpus_per_node: {per_node}, memory_headroom: 0}}", memory


def cache_bytes(model, tp):
    """Of a token, on one rank."""
    _, _, layers, heads, width = MODELS[model]
    return 2 * 2 * layers * width * max(heads // tp, 1)


def room_for(row, share, gpus, tokens):
    """How many samples of so many tokens have their keys and values in a share of what weights leave free."""
    _, memory = cluster_of(row["gpu"], gpus)
    return int(share * (memory * 2**30 - 2 * MODELS[row["model"]][1] / gpus) / (cache_bytes(row["model"], gpus) * tokens))


# ---- serving engines

def serving_document(row, tp, prompts, concurrent, prompt, response):
    experts = f", etp: {tp}" if row["model"].startswith("Mixtral") else ""
    return f"""name: serving
base:
  model: {MODELS[row["model"]][0]}
  cluster: {cluster_of(row["gpu"], tp)[0]}
  strategy: {{tp: {tp}{experts}}}
  fidelity: analytic
phases:
  - {{name: rollout, kind: generation, prompts: {prompts}, prompt_tokens: {prompt}, response_tokens: {response}, concurrent: {concurrent}}}
"""


def step_s(program, row, tp, samples, tokens, cached):
    graphs = ", stack.cuda_graphs: all" if cached else ""
    told = program.answer("run", f"""name: step
base:
  model: {{like: {MODELS[row["model"]][0]}, inference: generation, sequence: {tokens}, cached_tokens: {cached}}}
  cluster: {cluster_of(row["gpu"], tp)[0]}
  strategy: {{tp: {tp}, micro_batch: {samples}, global_batch: {samples}, recompute: none, sequence_parallel: false{graphs}}}
  fidelity: analytic
""")
    return told["step_time_s"]


def lengths(row):
    return f"{row['input_len'].split()[0]}/{row['output_len'].split()[0]}"


def throughput(program, row, static):
    """All requests at once: tokens per second of all GPUs."""
    tp, prompt, response = int(row["tp"]), int(row["input_len"].split()[0]), int(row["output_len"].split()[0])
    if static:
        prompts = concurrent = int(row["batch_or_concurrency"])
    else:
        prompts = 500 if row["source_id"] == "D2" else int(row["notes"].split("requests in run:")[1])
        concurrent = min(prompts, room_for(row, 0.95, tp, prompt + response), 16384)
    for fewer in range(3):  # what else is in memory may take the room of one or two
        told = program.answer("phases", serving_document(row, tp, prompts, concurrent - (0 if static else fewer), prompt, response))
        if told.get("iteration_s"):
            break
    else:
        return None
    phase = told["phases"][0]
    return {"predicted": phase["tokens"] / phase["time_s"],
            "parts": f"{concurrent - fewer} at once; prefills {100 * phase['rollout']['prefill_s'] / phase['time_s']:.0f} %"}


def latency(program, row):
    """Between tokens, in ms, where requests come at a rate: the decoding steps alone, and with prefills between them."""
    tp, prompt, response = int(row["tp"]), int(row["input_len"].split()[0]), int(row["output_len"].split()[0])
    rate = float(row["arrival"].split()[0])
    prefill_s = step_s(program, row, tp, 1, prompt, 0)
    load, between_s = rate * prefill_s, 0.01
    for _ in range(20):
        samples = max(1, round(rate * response * between_s))  # Little's law
        if load > 0.9 or samples > min(room_for(row, 0.9, tp, prompt + response), 400):
            return None
        decoding_s = step_s(program, row, tp, samples, 1, prompt + response // 2)
        before, between_s = between_s, decoding_s / (1 - load)
        if abs(between_s / before - 1) < 0.002:
            break
    return {"predicted_low": 1e3 * decoding_s, "predicted": 1e3 * between_s,
            "parts": f"{samples} at once; prefills {100 * load:.0f} % of the time"}


def decoding_rows(program):
    for row in csv.DictReader((FACTS / "decoding.csv").open()):
        source, gpu = row["source_id"], row["gpu"]
        if row["weight_dtype"] not in ("fp16", "bf16") or row["model"] not in MODELS:
            continue
        if source in ("D1", "D4") or row["arrival"] == "all at once":
            told = throughput(program, row, source == "D4")
            published = float(row["output_tok_s"])
            if source == "D4":
                published *= int(row["tp"])  # printed for each GPU (rl.md, D4)
            what = f"{row['model']}, {gpu.split()[0]}, tp {row['tp']}, {lengths(row)}"
            quantity = "tokens/s"
        elif source == "D2":
            told, published = latency(program, row), float(row["itl_ms"])
            what = f"{row['model']}, {gpu.split()[0]}, tp {row['tp']}, {lengths(row)}, {row['arrival']}"
            quantity = "ms between tokens"
        elif source == "D5":
            told = {"predicted": 1e3 * step_s(program, row, int(row["tp"]), 1, int(row["input_len"]), 0), "parts": ""}
            published = float(row["ttft_ms"])
            what = f"{row['model']}, {gpu.split('-')[0]}, tp {row['tp']}, {row['input_len']}"
            quantity = "ms to the first token"
        else:
            continue
        if told:
            yield {"row_id": row["row_id"], "quantity": quantity, "what": what, "published": published, **told}


# ---- steps of reinforcement learning

def number(row, key, otherwise=1):
    return int(row[key]) if row[key] else otherwise


def power_of_two(most):
    return 1 << (max(int(most), 1).bit_length() - 1)


def micro_batch(row, key, tokens, replicas_batch):
    """Samples of the mean length in the recipe's tokens of a micro-batch, a power of two that divides a replica's batch."""
    samples = power_of_two(number(row, key) * int(row["max_seq_len"] or 4096) / tokens)
    while replicas_batch % samples:
        samples //= 2
    return samples


def stage_layers(row, pp):
    """The layers of each stage where the recipe has fewer in the first and the last."""
    tag, name = "v" + row["version"].lstrip("v"), pathlib.PurePath(row["recipe"].split("@")[0]).stem
    for recipe in csv.DictReader((FACTS / "rl_recipes.csv").open()):
        first = recipe["megatron_cfg.num_layers_in_first_pipeline_stage"]
        if recipe["tag"] == tag and recipe["recipe"] == name and first:
            ends = [int(first), int(recipe["megatron_cfg.num_layers_in_last_pipeline_stage"])]
            middle = (MODELS[row["model"]][2] - sum(ends)) // (pp - 2)
            return ", stage_layers: " + "+".join(map(str, [ends[0], *[middle] * (pp - 2), ends[1]]))
    return ""


def mean_before_cut(mean, sigma, most):
    """The mean of lognormal lengths that have `mean` once those above `most` are cut to it."""
    def after_cut(uncut):
        middle = math.log(uncut) - sigma**2 / 2
        below = (math.log(most) - middle) / sigma
        share = statistics.NormalDist().cdf
        return uncut * share(below - sigma) + most * (1 - share(below))
    low, high = mean, 64 * most
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if after_cut(middle) < mean else (low, middle)
    return low


def lengths_of(program, row, form):
    """Responses that are all of the mean length, lognormal ones, or of the mean but for one in a hundred at the limit."""
    mean, most = float(row["avg_gen_tokens"]), int(row["max_seq_len"] or 4096) - PROMPT
    if form == "equal":
        return f"{mean:g}"
    if form == "lognormal":
        return f"{{mean: {mean_before_cut(mean, SIGMA, most):.0f}, sigma: {SIGMA}}}"
    name = f"tail-{mean:g}-{most}.csv"
    (program.runs / name).write_text(f"tokens,documents\n{(100 * mean - most) / 99:.0f},99\n{most},1\n")
    return f"{{file: {name}}}"


def packed_broadcast(row):
    """NeMo-RL's between pools: all trainers are in its group, and buckets have 2 % of the GPU's memory, 5 GiB at most."""
    memory = cluster_of(row["gpu"], 1)[1] * 2**30
    return f", group: all_trainers, bucket: {min(int(0.02 * memory), 5 * 2**30)}"


def step_document(row, concurrent, lengths):
    gpus, tp, cp, pp = int(row["n_gpus"]), number(row, "train_tp"), number(row, "train_cp"), number(row, "train_pp")
    ep, gen_tp = number(row, "train_ep"), number(row, "gen_tp", 4)
    apart = row["colocated"] == "no"
    trainers, generators = int(row["train_gpus"]), int(row["gen_gpus"])
    prompts = int(row["prompts_per_step"] or 64)
    samples, batch = int(row["samples_per_step"]), int(row["train_gbs"])
    tokens = float(row["avg_gen_tokens"]) + PROMPT
    dp = trainers // (tp * cp * pp)
    moe = "A3B" in row["model"] or "A22B" in row["model"] or "DeepSeek" in row["model"]
    layout = f"tp: {tp}, cp: {cp}, pp: {pp}, zero: {1 if dp > 1 else 0}" + (f", ep: {ep}, etp: 1" if moe else "")
    if pp > 1:
        layout += stage_layers(row, pp)
    recompute = "full" if row["activation_ckpt"] == "yes" else "none"
    most = int(row["max_seq_len"] or 4096) - PROMPT
    on = (lambda pool: f", on: {pool}") if apart else (lambda pool: "")
    scored = micro_batch(row, "logprob_batch", tokens, samples // dp)
    return f"""name: step
schedule: {"asynchronous" if apart else "synchronous"}
base:
  model: {MODELS[row["model"]][0]}
  cluster: {cluster_of(row["gpu"], gpus)[0]}
  fidelity: analytic
{f"pools: {{trainers: {trainers}, generators: {generators}}}" if apart else ""}
phases:
  - {{name: rollout, kind: generation{on("generators")}, prompts: {prompts}, responses: {samples // prompts}, prompt_tokens: {PROMPT},
     response_tokens: {lengths}, max_tokens: {most}, concurrent: {concurrent},
     base: {{strategy: {{tp: {gen_tp}{f", etp: {gen_tp}" if moe and gen_tp > 1 else ""}}}}}}}
  - {{name: policy, kind: scoring{on("trainers")}, from: update, base: {{strategy: {{{layout}, micro_batch: {scored}}}}}}}
  - {{name: reference, kind: scoring{on("trainers")}, base: {{strategy: {{{layout}, micro_batch: {scored}}}}}}}
  - {{name: update, kind: training{on("trainers")}, steps: {samples // batch}, resident: {"true" if apart else "false"},
     base: {{strategy: {{{layout}, recompute: {recompute}, micro_batch: {micro_batch(row, "micro_batch", tokens, batch // dp)}}}}}}}
  - {{name: weights, kind: transfer, from: update, to: rollout{packed_broadcast(row) if apart else ""}}}
"""


def step_prediction(program, row, form):
    gen_tp = number(row, "gen_tp", 4)
    replicas = int(row["gen_gpus"]) // gen_tp
    in_flight = -(-int(row["samples_per_step"]) // replicas)
    while in_flight >= 1:
        told = program.answer("phases", step_document(row, in_flight, lengths_of(program, row, form)))
        if told.get("iteration_s"):
            return told
        reason = told.get("refused") or "; ".join(phase["problem"] or "" for phase in told["phases"])
        if "memory" not in reason or "rollout" not in reason and "decode" not in reason:
            print(row["row_id"], reason[:300], file=sys.stderr)
            return None
        in_flight = in_flight * 3 // 4
    return None


def phase_times(told):
    times = {phase["phase"]: phase["time_s"] for phase in told["phases"]}
    return times["rollout"], times["policy"] + times["reference"], times["update"], times["weights"]


def step_rows(program):
    rows = list(csv.DictReader((FACTS / "rl_steps.csv").open()))
    for row in rows:
        if not row["row_id"].startswith(("nrl-0.3", "nrl-0.5", "nrl-0.6")) or row["model"] not in MODELS or not row["total_step_s"] or not row["samples_per_step"]:
            continue
        if row["train_backend"] != "Megatron-Core" or row["train_precision"] != "bfloat16" or row["grade"] == "C" or not row["avg_gen_tokens"]:
            continue
        told = [step_prediction(program, row, form) for form in ("equal", "lognormal", "tail")]
        if None in told:
            continue
        equal, spread, tail = told
        scoring, update, weights = (phase_times(spread)[i] for i in (1, 2, 3))
        rollouts = ", ".join(f"{phase_times(one)[0]:.3g}" for one in told)
        parts = f"rollout {rollouts}; scoring {scoring:.3g}, update {update:.3g}, weights {weights:.2g}"
        pools = "" if row["colocated"] == "yes" else f" ({row['train_gpus']} + {row['gen_gpus']})"
        yield {"row_id": row["row_id"], "quantity": "s an iteration",
               "what": f"{row['model']}, {row['n_gpus']}{pools} {row['gpu']}, {row['avg_gen_tokens']} tokens",
               "published": float(row["total_step_s"]), "predicted_low": equal["iteration_s"], "predicted": spread["iteration_s"],
               "predicted_high": tail["iteration_s"], "parts": parts}


def percent(row, key):
    return 100 * (row[key] / row["published"] - 1) if isinstance(row.get(key), float) else ""


def figure(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def table_of(rows):
    """A table of Markdown, of rows of one quantity."""
    text = f"| row | | published, {rows[0]['quantity']} | predicted | error | |\n|---|---|---|---|---|---|\n"
    for row in rows:
        told = [key for key in FORMS if row.get(key)]
        text += (f"| {row['row_id']} | {row['what']} | {figure(row['published'])} | {', '.join(figure(row[key]) for key in told)} "
                 f"| {', '.join(f'{percent(row, key):+.0f}' for key in told)} % | {row['parts']} |\n")
    return text


def write(rows):
    page = PAGE.read_text()
    for quantity in dict.fromkeys(row["quantity"] for row in rows):
        page = with_part(page, quantity.replace(" ", "-"), table_of([row for row in rows if row["quantity"] == quantity]))
    PAGE.write_text(page)
    with OUTPUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            row |= {key.replace("predicted", "error") + "_percent": percent(row, key) for key in FORMS}
            writer.writerow([f"{row[key]:.4g}" if isinstance(row.get(key), float) else row.get(key, "") for key in COLUMNS])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(FACTS.parent.parent / "build/release/manyworlds"))
    parser.add_argument("--runs", default="runs/compare_rl", help="a folder for documents and answers")
    parser.add_argument("tables", nargs="*", choices=["steps", "decoding", []], help="default: both, and they are written")
    given = parser.parse_args()
    runs = pathlib.Path(given.runs)
    runs.mkdir(parents=True, exist_ok=True)
    program = Program(given.program, runs)
    rows = []
    for table in given.tables or ("decoding", "steps"):
        for row in {"steps": step_rows, "decoding": decoding_rows}[table](program):
            rows.append(row)
            print(row, flush=True)
    if not given.tables:
        write(rows)


if __name__ == "__main__":
    main()
