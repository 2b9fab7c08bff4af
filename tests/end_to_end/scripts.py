"""The scripts people run: clean by shellcheck, refuse what they do not know, and start from any directory."""

import os
import pathlib
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
SCRIPTS = sorted(path for folder in ("script", ".ci", "slurm") for path in (ROOT / folder).glob("*")
                 if path.is_file() and path.read_text().startswith("#!"))


class Scripts(unittest.TestCase):
    def test_there_are_scripts_to_look_at(self):
        self.assertLessEqual({"build", "demo", "test", "run"}, {path.name for path in SCRIPTS})

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck_has_nothing_to_say(self):
        found = subprocess.run(["shellcheck", *map(str, SCRIPTS)], capture_output=True, text=True)
        self.assertEqual(found.stdout, "")

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck_would_have(self):
        found = subprocess.run(["shellcheck", "-s", "bash", "-"], input="rm $1\n", capture_output=True, text=True)
        self.assertIn("SC2086", found.stdout)

    def test_an_unknown_word_is_refused_before_any_work(self):
        for script, words in [("test", ["--al"]), ("demo", ["--fast"])]:
            done = subprocess.run([str(ROOT / "script" / script), *words], cwd="/", capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=10)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"usage: script/{script}", done.stderr)

    def test_the_packages_are_named_once_each(self):
        names = [line for line in (ROOT / "script/packages").read_text().splitlines() if not line.startswith("#")]
        self.assertGreater(len(names), 10)
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
