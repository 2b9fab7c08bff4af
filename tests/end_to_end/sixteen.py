"""tests/bench/sixteen.py finds every sweep and experiment that it names, and each optimisation does what it is for."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])
SLOWER = {4, 10}  # these pay in time for memory


class Sixteen(unittest.TestCase):
    def test_each_is_faster_or_takes_less_memory(self):
        told = subprocess.run([sys.executable, ROOT / "tests" / "bench" / "sixteen.py", "--build", BUILD], check=True,
                              capture_output=True, text=True).stdout
        seen = set()
        for line in told.splitlines()[1:]:
            number = int(line.split()[0])
            seen.add(number)
            with self.subTest(line=line):
                if number == 2:
                    self.assertRegex(line, r"does not fit .* fits\b")
                    continue
                effect = float(re.search(r" ([-+]\d+(?:\.\d+)?) %", line[80:]).group(1))
                self.assertEqual(effect > 0, number not in SLOWER | {12})
                memory, memory_on = map(float, re.findall(r" (\d+\.\d)(?= )", line)[:2])
                if number in SLOWER:
                    self.assertLess(memory_on, memory)
        self.assertEqual(seen, set(range(1, 17)) - {11})


if __name__ == "__main__":
    unittest.main()
