#!/usr/bin/env python3
"""The same configurations give the same bits by GCC and Clang, without optimisation and with all of it."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["MANYWORLDS_SOURCE_DIR"]


def answers(compiler, level, folder):
    build = os.path.join(folder, f"{compiler}{level}")
    configure = ["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}",
                 "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={level}"]
    for command in (configure, ["cmake", "--build", build, "--target", "arithmetic_answers"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return subprocess.run([os.path.join(build, "tests", "arithmetic_answers")], capture_output=True, text=True, check=True).stdout


class Arithmetic(unittest.TestCase):
    def test_compilers_and_levels_agree_to_the_last_bit(self):
        compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
        if len(compilers) < 2:
            print(f"only {compilers} here: levels are compared, compilers are not", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            builds = {(c, level): answers(c, level, folder) for c in compilers for level in ("-O0", "-O3")}
        expected = builds[("g++", "-O3")]
        self.assertEqual(len(expected.splitlines()), 90)
        for build, printed in builds.items():
            self.assertEqual(printed, expected, f"{build} differs from g++ -O3")


if __name__ == "__main__":
    unittest.main()
