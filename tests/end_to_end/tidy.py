"""clang-tidy has nothing to say about the program's sources, by the checks of .clang-tidy: some of those that find faults.

    tidy.py [FOLDER...]     below these folders of the repository alone

The version is Debian 12's, since others have other checks. It needs a build's compile_commands.json, and many minutes."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])
FOLDERS = ["core", "topologies", "experiments", "io", "farm"]
VERSION = "14"


def tidier():
    """The clang-tidy of VERSION, or none."""
    for name in (f"clang-tidy-{VERSION}", "clang-tidy"):
        if path := shutil.which(name):
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return path
    return None


def faults(files, build):
    """What clang-tidy says about files whose commands `build` has, and about the headers that they include."""
    words = ["nice", "xargs", "-0", "-P", str(os.cpu_count()), "-n", "1", tidier(), "-p", str(build), "--quiet",
             f"--config-file={ROOT}/.clang-tidy"]
    found = subprocess.run(words, input="\0".join(map(str, files)), capture_output=True, text=True)
    said = sorted(set(re.findall(r"^(.*?: (?:error|warning): .*)$", found.stdout, re.MULTILINE)))
    if (found.returncode == 0) != (said == []):
        raise AssertionError(f"clang-tidy ended with {found.returncode}:\n{found.stdout}{found.stderr}")
    return said


@unittest.skipUnless(tidier(), f"clang-tidy {VERSION} is not installed")
class Tidy(unittest.TestCase):
    folders = FOLDERS

    def test_no_source_of_the_program_has_a_fault(self):
        files = [path for folder in self.folders for path in sorted((ROOT / folder).rglob("*.cpp"))]
        self.assertGreater(len(files), 0)
        self.assertEqual(faults(files, BUILD), [])

    def test_a_fault_is_found_in_a_source_and_in_its_header(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory) / "core/base"
            folder.mkdir(parents=True)
            source = folder / "moved.cpp"
            source.write_text('#include "core/base/moved.hpp"\n#include <utility>\n'
                              "std::string twice(std::string a) { std::string b = std::move(a); return a + b; }\n")
            (folder / "moved.hpp").write_text("#include <string>\n"
                                              "#include <vector>\n"
                                              "inline std::size_t size(const std::vector<std::string>& all) {\n"
                                              "  std::size_t sum = 0;\n  for (const std::string a : all) sum += a.size();\n"
                                              "  return sum;\n}\n")
            (pathlib.Path(directory) / "compile_commands.json").write_text(json.dumps([
                {"directory": directory, "file": str(source), "command": f"c++ -std=c++20 -I{directory} -c {source}"}]))
            found = faults([source], directory)
            self.assertEqual([re.search(r"\[([\w-]+)", line).group(1) for line in found],
                             ["bugprone-use-after-move", "performance-for-range-copy"])


if __name__ == "__main__":
    Tidy.folders = sys.argv[1:] or FOLDERS
    unittest.main(argv=sys.argv[:1], verbosity=2)
