#!/usr/bin/python3
"""Puts the accuracy table that `manyworlds validate` prints into docs/accuracy.md, and the residuals of that run beside it.

    script/update_accuracy.py [--program build/release/manyworlds] [--run DIR] [--check]

It simulates every measured row, and the steps once more with each family left out of the fit: several minutes. A run
directory is gone on with where --run names one. With --check nothing is written; it ends in 1 where docs/accuracy.md or
experiments/measured/residuals.csv differ from what this build gives.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from readme_part import README, with_part

ROOT = README.parent
PAGE = ROOT / "docs/accuracy.md"
RESIDUALS = ROOT / "experiments/measured/residuals.csv"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/release/manyworlds"))
    parser.add_argument("--run", help="a run directory to make or go on with")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        residuals = pathlib.Path(folder) / "residuals.csv"
        command = [given.program, "validate", "--markdown", "--leave-one-family-out", "--residuals", str(residuals)]
        if given.run:
            command += ["-o", given.run]
        table = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        new = {PAGE: with_part(PAGE.read_text(), "accuracy-table", table), RESIDUALS: residuals.read_text()}
    differ = [path for path, text in new.items() if path.read_text() != text]
    for path in differ:
        print(f"{path.relative_to(ROOT)} {'is not what this build gives' if given.check else 'written'}", file=sys.stderr)
        if not given.check:
            path.write_text(new[path])
    sys.exit(1 if given.check and differ else 0)


if __name__ == "__main__":
    main()
