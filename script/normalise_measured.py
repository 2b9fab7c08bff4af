#!/usr/bin/python3
"""Makes experiments/measured/training_steps.csv from a table of measured training steps as their sources print them.

    script/normalise_measured.py ORIGINAL.csv [-o experiments/measured/training_steps.csv]

GPUs, precisions, schedules, recompute, ZeRO stages and models become catalog ids, integers and enumerations by the words
in experiments/measured/words.csv; the family, the software stack and the cluster come from sources.csv there. What a cell
said before is kept in the column `original`. Nothing is invented: what is not printed stays empty, and the program says
what it assumes. Given its own output it makes it again.
"""

import argparse
import collections
import csv
import pathlib
import re

MEASURED = pathlib.Path(__file__).resolve().parent.parent / "experiments" / "measured"
MODELS = MEASURED.parent / "catalog" / "models"
WORDED = ["gpu", "dtype", "schedule", "recompute", "zero_stage"]  # columns whose texts words.csv explains
ADDED = ["family", "stack", "cluster", "catalog_model", "nic_assumed", "weight", "included", "exclusion_reason", "original"]

# Rows to keep and not to fit, by id: what is odd about them.
APART = {
    "llmf_119": "an outlier among its neighbours", "llmf_120": "an outlier among its neighbours",
    "llmf_079": "an outlier among its neighbours", "llmf_020": "an outlier among its neighbours",
    "llmf_067": "an outlier among its neighbours", "vtrain_multi_0013": "an outlier among its neighbours",
    "nemo_013": "an outlier among its neighbours",
}


def squeezed(text):
    return re.sub("[^a-z0-9]", "", text.lower())


def rows_of(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def meaning(words, column, text):
    said = squeezed(text)
    for word in words:
        if word["column"] == column and word["contains"] in said:
            return word["value"]
    return None


def normal(words, column, text):
    """The canonical form of one cell, or the cell itself where words.csv does not know it."""
    if column == "zero_stage" and text[:1].isdigit():
        return text[0]
    return meaning(words, column, text) or text


def origin_of(sources, row):
    experts = " experts " + row["model"] if int(row["ep"] or 1) > 1 else ""  # recipes differ by model
    said = squeezed(row["source"] + row["notes"] + row["gpu"] + row["dtype"] + experts)
    return next(origin for origin in sources
                if all(word in said for word in origin["contains"].split("+"))
                and int(row["year"] or 0) >= int(origin["from_year"] or 0))


def has_experts(catalog_model):
    file = MODELS / f"{catalog_model}.yaml"
    return file.is_file() and re.search(r"^  experts:", file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def family_of(origin, row):
    kind = "MoE" if int(row["ep"] or 1) > 1 or has_experts(row["catalog_model"]) else "dense"
    cut = "ZeRO-3" if row["zero_stage"].startswith("3") else "3D"
    name = origin["family"] or re.split(r"[(\[;]", row["source"])[0].strip()
    return name.replace("{gpu}", row["gpu"].split("_")[0].upper()).replace("{kind}", kind).replace("{sharding}", cut)


def exclusion_reason(row):
    if row["id"] in APART:
        return APART[row["id"]]
    if int(row["tp"] or 1) > int(row["gpus_per_node"] or 8):
        return "tensor parallel across nodes"
    if row["family"] == "vTrain multi node" and row["model"] == "GPT 30x3072" and row["tp"] == "8" and row["micro_batch"] in ("2", "64"):
        return "vTrain 3.6B with tp 8 and the smallest or largest micro-batch"
    if row["gpu"] == "h100_sxm" and row["model"] == "Qwen3_30B_a3B" and re.search(r"\.md (25\.11|26\.02) ", row["source"]):
        return "release 26.02.01 halved what this layout takes"
    return ""


def restored(row):
    """The row as its source has it: `original` undone."""
    row = dict(row)
    for cell in filter(None, row.get("original", "").split(" | ")):
        column, _, text = cell.partition("=")
        row[column] = text
    return {column: text for column, text in row.items() if column not in ADDED}


def normalised(row, words, sources):
    made = restored(row)
    before = dict(made)
    for column in WORDED:
        made[column] = normal(words, column, made[column]) if made[column] else ""
    origin = origin_of(sources, made)
    made["catalog_model"] = meaning(words, "model", made["model"]) or ""
    made["family"] = family_of(origin, made)
    made["stack"] = origin["stack"]
    made["cluster"] = origin["cluster"]
    across = made["num_gpus"] and int(made["num_gpus"]) > int(made["gpus_per_node"] or 8)
    made["nic_assumed"] = "1" if across and not made["inter_bw_GBps_per_gpu"] else "0"
    made["exclusion_reason"] = exclusion_reason(made)
    made["included"] = "0" if made["exclusion_reason"] else "1"
    made["original"] = " | ".join(f"{column}={before[column]}" for column in WORDED if made[column] != before[column])
    return made


def weigh(rows):
    """vTrain's single-node rows are composed of profiles: together they count as the cells they were made of."""
    cell = lambda row: (row["hidden"], row["tp"], row["micro_batch"])
    cells = collections.Counter(cell(row) for row in rows if row["family"] == "vTrain single node")
    for row in rows:
        row["weight"] = f"{1 / cells[cell(row)]:.6g}" if row["family"] == "vTrain single node" else "1"


def write_normalised(rows, path):
    words, sources = rows_of(MEASURED / "words.csv"), rows_of(MEASURED / "sources.csv")
    rows = [normalised(row, words, sources) for row in rows]
    weigh(rows)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [column for column in rows[0] if column not in ADDED] + ADDED, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original")
    parser.add_argument("-o", "--output", default=str(MEASURED / "training_steps.csv"))
    given = parser.parse_args()
    write_normalised(rows_of(given.original), given.output)


if __name__ == "__main__":
    main()
