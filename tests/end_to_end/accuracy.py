"""The accuracy table of docs/accuracy.md and the residuals behind intervals are those that this build gives: all rows, simulated again."""

import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
PROGRAM = str(pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"]) / "manyworlds")


class Accuracy(unittest.TestCase):
    def test_the_table_and_the_residuals_are_what_validate_gives(self):
        done = subprocess.run(["/usr/bin/python3", str(ROOT / "script/update_accuracy.py"), "--program", PROGRAM, "--check"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
