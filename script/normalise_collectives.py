#!/usr/bin/python3
"""Makes experiments/measured/collectives.csv from a table of measured collectives as their sources print them.

    script/normalise_collectives.py ORIGINAL.csv [-o experiments/measured/collectives.csv]

GPUs become catalog ids by experiments/measured/words.csv, sizes whole bytes; what a cell said before is kept in the
column `original`. Rows that contradict their neighbours are marked. Given its own output it makes it again.
"""

import argparse
import csv

from normalise_measured import MEASURED, normal, rows_of

EXCHANGE = ["kernels", "tokens", "top_k", "experts", "units", "row_bytes", "node_limit"]
ADDED = EXCHANGE + ["included", "exclusion_reason", "original"]

# Rows to keep and not to count, by id: what is odd about them.
APART = {
    "echo_64_1024": "slower than sizes 256 times as large",
    "echo_64_131072": "twice as slow as sizes twice as large",
}
APART |= {f"mle_h200_ar8_{bytes}": "timed in torch: some 18 us of the harness are in it"
          for bytes in (32768, 65536, 131072, 262144, 524288)}


def exchange_of(row):
    """The columns of an exchange of experts' tokens, from what DeepEP's README says of its table and its tests of 24
    multiprocessors: 8-bit rows with a scale for 128 values are sent, 16-bit rows return."""
    if not row["id"].startswith("deepep1_"):
        return dict.fromkeys(EXCHANGE, "")
    row_bytes = 7168 + 7168 // 32 if row["op"] == "moe_dispatch" else 2 * 7168
    return dict(zip(EXCHANGE, ["deepep", "4096", "8", "256", "24", str(row_bytes), "4"]))


def restored(row):
    row = dict(row)
    for cell in filter(None, row.get("original", "").split(" | ")):
        column, _, text = cell.partition("=")
        row[column] = text
    return {column: text for column, text in row.items() if column not in ADDED}


def normalised(row, words):
    before = restored(row)
    made = dict(before)
    made["gpu"] = normal(words, "gpu", made["gpu"])
    for column in ("ranks", "nodes", "gpus_per_node", "bytes"):
        if made[column]:
            made[column] = str(int(float(made[column])))
    made |= exchange_of(made)
    if made["kernels"]:
        made["intra_bw_GBps"] = ""  # the 160 GB/s of the README are what its authors reached, not the link's rate
    made["exclusion_reason"] = APART.get(made["id"], "")
    made["included"] = "0" if made["exclusion_reason"] else "1"
    made["original"] = " | ".join(f"{column}={text}" for column, text in before.items() if made[column] != text)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original")
    parser.add_argument("-o", "--output", default=str(MEASURED / "collectives.csv"))
    given = parser.parse_args()
    words = rows_of(MEASURED / "words.csv")
    rows = [normalised(row, words) for row in rows_of(given.original)]
    with open(given.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [column for column in rows[0] if column not in ADDED] + ADDED, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
