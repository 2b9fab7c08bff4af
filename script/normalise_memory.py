#!/usr/bin/python3
"""Makes experiments/measured/memory.csv from a table of the peaks that Megatron-LM's functional tests keep.

    script/normalise_memory.py ORIGINAL.csv [-o experiments/measured/memory.csv] [--prefix memory]

Columns stay that program's arguments, in their order; those that no row gives are left out. Rows get an id, the
number of GPUs where the recipes of the tests say it, and a mark where another run of the same test contradicts them. Given its own output it makes it again.
"""

import argparse
import collections
import csv
import pathlib

MEASURED = pathlib.Path(__file__).resolve().parent.parent / "experiments" / "measured"

# Tests of releases, whose recipes are not published: what the optimizer's share in the memory that stays allocated
# (mem_allocated_bytes_last) leaves as number of replicas, times the ranks of one.
RELEASE_GPUS = {
    "gpt/gpt3_15b_8t_release": 128,
    "gpt/gpt3_15b_8t_release_sm": 128,
    "gpt/gpt3_15b_8t_release_sm_gb200": 64,
    "mixtral/mixtral_8x22b_tp2pp8ep8vpp1_release": 128,
    "mixtral/mixtral_8x7b_alltoall_tp2pp4ep4_release_sm": 128,
    "mixtral/deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release": 64,
    "mixtral/deepseekv3_proxy_flex_tp2pp2emp16etp1cp1_gb_200_release": 32,
    "nemotron/nemotron3_super_release_g200": 64,
    "nemotron/nemotron3_super_release_gb200_sm": 64,
    "bert/bert_release": 64,  # the ranks of one replica; without the distributed optimizer more change nothing
}

# Golden values that are older than the model_config.yaml beside them, by the history of both (NVIDIA/Megatron-LM): those of
# f098fe8482 and be2b2cd70d (April and May 2026) ran Transformer Engine's loss, which 168cb15d70 (3 June 2026) turned off.
OLDER = {
    "mixtral/deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release": {"cross-entropy-fusion-impl": "te"},
    "mixtral/deepseekv3_proxy_flex_tp2pp2emp16etp1cp1_gb_200_release": {"cross-entropy-fusion-impl": "te"},
}


ADDED = ("id", "gpus", "contradicted")
REPEATS = 1.15


def gpus_of(row):
    """tests/test_utils/recipes of Megatron-LM: eight GPUs, or on GB200 four of one node where the name says so."""
    if row["test_case"] in RELEASE_GPUS:
        return RELEASE_GPUS[row["test_case"]]
    return 4 if row["test_case"].endswith("_1node") else 8


def mark_contradictions(rows):
    """Runs of one test on one GPU that differ by more than REPEATS ran different software, which no argument tells."""
    runs = collections.defaultdict(list)
    for row in rows:
        runs[row["test_case"], row["device"].removesuffix("_2nd")].append(row)
    for same in runs.values():
        peaks = [int(row["mem_max_allocated_bytes"]) for row in same]
        for row in same:
            row["contradicted"] = "true" if max(peaks) > REPEATS * min(peaks) else ""


def rows_of(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def normalised(rows, prefix):
    made = []
    for number, row in enumerate(rows, 1):
        row = {name: value for name, value in row.items() if name not in ADDED}
        made.append({"id": f"{prefix}_{number:03}", "gpus": str(gpus_of(row))} | row | OLDER.get(row["test_case"], {}))
    mark_contradictions(made)
    given = [name for name in made[0] if any(row[name] for row in made)]
    return given, [{name: row[name] for name in given} for row in made]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original")
    parser.add_argument("-o", "--output", default=str(MEASURED / "memory.csv"))
    parser.add_argument("--prefix", default="memory", help="what the ids of rows begin with")
    given = parser.parse_args()
    columns, rows = normalised(rows_of(given.original), given.prefix)
    with open(given.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
