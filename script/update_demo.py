#!/usr/bin/python3
"""Puts what the demo prints into README.md, and pictures of its report into docs/pictures.

    script/update_demo.py [--program build/release/manyworlds] [--run DIR] [--check]

It runs the demo's search with an empty store: a minute or two. A run directory is gone on with where --run names one. With --check
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


def search(program, run, folder):
    """What the demo's search prints, in a run directory that it makes or goes on with."""
    words, = re.findall(r"release/manyworlds (search .*?) \\\n", (ROOT / "script/demo").read_text())
    return subprocess.run([program, *words.split(), "-o", run, "--store", f"{folder}/store"], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def said_of(run, printed):
    parts = [pathlib.Path(run), *sorted(pathlib.Path(f"{run}.search").glob("[0-9]*")),
             *sorted(pathlib.Path(f"{run}.search").glob("screening-*"))]
    figures = []
    for each in parts:
        with h5py.File(each / "results.h5") as file:
            figures.append(dict(file["provenance"].attrs))
    seconds = sum(each["elapsed_s"] for each in figures)
    transferred, simulated = figures[0]["link_hops_transferred"], sum(each["link_hops_simulated"] for each in figures)
    minutes = math.ceil(seconds / 60)
    power = lambda value: f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"""What the demo prints:

```
{printed}```

Each of the layouts listed is simulated packet by packet at real sizes (4 KiB packets). All that were make {power(transferred)}
packets crossing links, of which {power(simulated)} had to be simulated, the rest being the same thing happening again. On
{figures[0]["ranks"]} cores it takes less than {minutes} {"minute" if minutes == 1 else "minutes"}.
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
    parser.add_argument("--run", help="a run directory to make or go on with")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    given = parser.parse_args()
    readme = README.read_text()
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(given.run or f"{folder}/demo").resolve()
        printed = search(given.program, run, folder).replace(f"{run}.search", "runs/demo.search")
        if given.check:
            here, = re.findall(r"^```\n(.*?)^```$", part(readme, PART), re.MULTILINE | re.DOTALL)
            if here != printed:
                sys.exit(f"README.md has another table than this build prints:\n{printed}")
            return
        README.write_text(with_part(readme, PART, said_of(run, printed)))
        take_pictures(given.program, run, folder)


if __name__ == "__main__":
    main()
