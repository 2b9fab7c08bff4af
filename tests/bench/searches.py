"""Searches of today's models on 64 to 1,024 GPUs: what each finds within its budget, beside the recipe that NVIDIA published.

    tests/bench/searches.py [--program build/release/manyworlds] [--budget 60s] [--folder DIR] [CASE...]

Prints a row of docs/searches.md for each; a CASE is a part of its name, such as qwen3 or 70b-h100-512. A folder that exists is
gone on with. CPU seconds are those of the search and all that it starts: the figure that other work on the machine changes least.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time

SEQUENCE = {"llama3-8b": 8192, "llama3-70b": 8192, "llama3-405b": 8192, "mixtral-8x7b": 4096, "mixtral-8x22b": 4096,
            "qwen3-235b-a22b": 4096}
BATCH = {64: 512, 128: 1024, 256: 2048, 512: 2048, 1024: 4096}
# The rows of docs/searches.md; without a CASE these alone are searched.
CASES = ["llama3-8b-h100-64", "llama3-8b-h200-256", "llama3-70b-h100-64", "llama3-70b-h100-512", "llama3-70b-h100-1024",
         "llama3-405b-h100-1024", "mixtral-8x7b-h200-128", "qwen3-235b-a22b-h200-256"]
# Published layouts (experiments/measured/training_steps.csv), all in FP8; the batch is theirs.
RECIPES = {
    ("llama3-70b", "h100", 64): (256, {"tp": 4, "pp": 8, "cp": 1, "virtual_stages": 5, "micro_batch": 1}),
    ("llama3-405b", "h100", 1024): (1536, {"tp": 8, "pp": 8, "cp": 2, "virtual_stages": 8, "micro_batch": 1}),
    ("qwen3-235b-a22b", "h100", 256): (2048, {"tp": 2, "pp": 8, "cp": 1, "ep": 32, "virtual_stages": 4, "micro_batch": 1}),
}
SHORT = {"virtual_stages": "vp", "micro_batch": "mbs"}


def layout_of(row):
    return {word.split("=")[0]: word.split("=")[1] for word in row["layout"].split() if "=" in word}


def short(layout):
    shown = [f"{SHORT.get(key, key)}{layout[key]}" for key in
             ("tp", "pp", "cp", "ep", "etp", "virtual_stages", "micro_batch", "zero") if key in layout and
             (key in ("tp", "pp", "micro_batch", "zero") or layout[key] != "1")]
    return " ".join(shown) + (" recompute" if layout.get("recompute") == "full" else "")


def place_of(recipe, rows):
    for place, row in enumerate(rows, 1):
        layout = layout_of(row)
        if all(layout.get(key, "1") == str(value) for key, value in recipe.items()):
            return place, row["columns"]["step_time_s"] / rows[0]["columns"]["step_time_s"] - 1
    return None


def run(program, model, gpu, gpus, budget, folder):
    batch, recipe = RECIPES.get((model, gpu, gpus), (BATCH[gpus], None))
    words = [program, "search", "--model", model, "--gpu", gpu, "--gpus", gpus, "--sequence", SEQUENCE[model],
             "--global-batch", batch, "--budget", budget, "-j", 2, "-k", 100_000, "--store", folder / "store",
             "-o", folder / f"{model}-{gpu}-{gpus}", "--json"] + (["--precision", "fp8"] if recipe else [])
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    seconds = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    name = f"{model}, {gpus} {gpu.upper()}, {batch}" + (", fp8" if recipe else "")
    if done.returncode:
        return f"| {name} | {(done.stdout or done.stderr).strip().splitlines()[-1][:90]} | | | | | {seconds:.0f} | {cpu:.0f} |"
    found = json.loads(done.stdout)
    rows, screening = found["top"]["rows"], found.get("screening", {"layouts": len(found["top"]["rows"])})
    if found["fidelity"] == "bounds":
        return f"| {name} | {found['fitting']} / 0 / 0 | {short(layout_of(rows[0]))} by its bound | | | | {seconds:.0f} | {cpu:.0f} |"
    simulated = found.get("simulated", 0)
    certain = "proven" if found.get("settled") else \
        f"≤ {100 * found['open']['faster_at_most']:.1f} %" if simulated else "no packets"
    beside = ""
    if recipe:
        place = place_of(recipe, rows)
        beside = f"{short({k: str(v) for k, v in recipe.items()})}: " + (
            f"#{place[0]}, {100 * place[1]:+.1f} %" if place else "not simulated")
    spearman = screening.get("spearman")
    best = rows[0]
    return (f"| {name} | {found['fitting']} / {screening['layouts']} / {simulated} | "
            f"{short(layout_of(best))}, {best['columns']['step_time_s']:.2f} s, {100 * best['columns']['mfu']:.0f} % | {certain} | "
            f"{beside} | {'' if spearman is None else f'{spearman:.2f}'} | {seconds:.0f} | {cpu:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/manyworlds")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("case", nargs="*")
    given = parser.parse_args()
    folder = given.folder or pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-searches-"))
    print("| model, GPUs, batch | fit / screened / packets | #1: layout, step, MFU | may be better by | NVIDIA's recipe | Spearman | s | CPU s |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for model in SEQUENCE:
        for gpu in ("h100", "h200"):
            for gpus in BATCH:
                name = f"{model}-{gpu}-{gpus}"
                if any(case in name for case in given.case) if given.case else name in CASES:
                    print(run(given.program, model, gpu, gpus, given.budget, folder), flush=True)
    print(f"load of the machine at the end: {os.getloadavg()[2]:.1f} on {os.cpu_count()} CPUs")


if __name__ == "__main__":
    main()
