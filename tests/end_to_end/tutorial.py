"""The tutorial's commands run as they are printed, and print what it shows of them.

With --write as an argument, lines that differ in their figures alone are written again."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import PATIENCE_S, PROGRAM, ROOT

PAGE = ROOT / "docs/tutorial.md"
FILES = {"train.sh": "jobs/train_llama3_8b_h100_fp8.sh", "config.json": "models/meta-llama--Meta-Llama-3.1-8B.json",
         "torchtitan_h200.log": "logs/torchtitan_h200.log", "torchtitan_h200.yaml": "logs/torchtitan_h200.yaml"}


def without_figures(line):
    return re.sub(r"[\d.,]+", "0", " ".join(line.split()))


def run(commands, folder):
    environment = {**os.environ, "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{folder}/cache",
                   "XDG_DATA_HOME": f"{folder}/data"}
    return subprocess.run(["bash", "-ec", commands], cwd=folder, env=environment, timeout=PATIENCE_S, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)


class Tutorial(unittest.TestCase):
    def test_its_commands_print_what_it_shows(self):
        page = PAGE.read_text()
        for name, origin in FILES.items():
            self.assertIn(f"`{name}`", page)
            self.assertTrue((ROOT / "tests/experiments" / origin).exists())
        with tempfile.TemporaryDirectory() as folder:
            for name, origin in FILES.items():
                shutil.copyfile(ROOT / "tests/experiments" / origin, pathlib.Path(folder) / name)
            printed, shown = "", 0
            for kind, text in re.findall(r"^```(sh|text|yaml)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
                if kind == "yaml":
                    (pathlib.Path(folder) / "nics.yaml").write_text(text)
                elif kind == "sh":
                    # What a search prints depends on its time, unless it has enough of it.
                    done = run(re.sub(r"^(manyworlds search [^\n#]*?)( *#|$)", r"\1 --budget 10m\2", text, flags=re.MULTILINE), folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    printed = done.stdout
                else:
                    lines = {without_figures(line): line for line in printed.splitlines()}
                    for line in text.splitlines():
                        self.assertIn(without_figures(line), lines, printed)
                        page = page.replace(line, lines[without_figures(line)])
                        shown += 1
            self.assertGreater(shown, 15)
            self.assertTrue((pathlib.Path(folder) / "best.sh").read_text().startswith("#!/bin/bash"))
        if WRITE:
            PAGE.write_text(page)


WRITE = "--write" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--write"])
