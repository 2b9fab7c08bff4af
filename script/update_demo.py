#!/usr/bin/python3
"""Puts what the demo prints into README.md, and pictures of its report into docs/pictures.

    script/update_demo.py [--program build/release/manyworlds] [--run DIR] [--check]

It runs the demo's sweep with an empty store: some minutes. The run is that of --run where one is named. With --check
nothing is written; it ends in 1 where the table in README.md is not what this build prints.
"""

import argparse
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import h5py

from readme_part import README, part, with_part

ROOT = README.parent
PICTURES = ROOT / "docs/pictures"
PART = "demo-table"
# Of the report: where the time goes, and what is best for the memory it takes.
WIDTH, HEIGHT, FROM = 1100, 1020, "#time"


def run_of(given, folder):
    """The run directory; that of --run, or one made now."""
    if given.run:
        return pathlib.Path(given.run)
    run = pathlib.Path(folder) / "run"
    subprocess.run([given.program, "sweep", ROOT / "experiments/sweeps/first.yaml", "-o", run, "--store", f"{folder}/store"],
                   check=True, stdout=subprocess.DEVNULL)
    return run


def said_of(run, table):
    with h5py.File(run / "results.h5") as file:
        status = [value.decode() for value in file["experiments/status"][:]]
        excluded = len(file["excluded/rule"])
        figures = dict(file["provenance"].attrs)
    ran = status.count("ran")
    minutes = math.ceil(figures["elapsed_s"] / 60)
    power = lambda value: f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"""What the demo prints ({len(status):,} layouts, {excluded} more left out as invalid; {ran} ran, \
{status.count("out_of_memory")} do not fit into 80 GB):

```
{table}```

Every one of those {ran} is simulated packet by packet at real sizes (sequence 2,048, global batch 512, 4 KiB packets):
{power(figures["link_hops_transferred"])} packets crossing links, of which {power(figures["link_hops_simulated"])} had to be \
simulated, the rest being the same thing happening again. On
{figures["ranks"]} cores it takes less than {minutes} {"minute" if minutes == 1 else "minutes"}.
"""


def take_pictures(program, run, folder):
    sys.path.insert(0, str(ROOT / "tests/end_to_end"))
    import browser

    page = pathlib.Path(folder) / "report.html"
    subprocess.run([program, "report", run, "-o", page, "-k", "10"], check=True, stderr=subprocess.DEVNULL)
    PICTURES.mkdir(exist_ok=True)
    for name, dark in (("light", False), ("dark", True)):
        with browser.Browser(dark=dark, width=WIDTH, height=HEIGHT) as opened:
            opened.open(page.as_uri())
            opened.wait_for("return document.documentElement.dataset.ready")
            opened.run("document.querySelector(arguments[0]).scrollIntoView()", FROM)
            opened.picture(PICTURES / f"report-{name}.png", whole=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/release/manyworlds"))
    parser.add_argument("--run", help="a run of the demo's sweep")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    given = parser.parse_args()
    readme = README.read_text()
    with tempfile.TemporaryDirectory() as folder:
        run = run_of(given, folder)
        table = subprocess.run([given.program, "top", run], stdout=subprocess.PIPE, text=True, check=True).stdout
        if given.check:
            here, = re.findall(r"^```\n(.*?)^```$", part(readme, PART), re.MULTILINE | re.DOTALL)
            if here != table:
                sys.exit(f"README.md has another table than this build prints:\n{table}")
            return
        README.write_text(with_part(readme, PART, said_of(run, table)))
        take_pictures(given.program, run, folder)


if __name__ == "__main__":
    main()
