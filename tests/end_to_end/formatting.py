"""Every source of C++ is formatted as .clang-format says, by the clang-format of Debian 12: others break lines elsewhere."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
FOLDERS = ["core", "topologies", "experiments", "io", "farm", "tests"]
VERSION = "14"


def formatter():
    """The clang-format of VERSION, or none."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if path := shutil.which(name):
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return path
    return None


def misformatted(files):
    """What clang-format says about files, which lie below one that has the rules."""
    found = subprocess.run(["xargs", "-0", "-P", str(os.cpu_count()), "-n", "40", formatter(), "--dry-run", "-Werror"],
                           input="\0".join(map(str, files)), capture_output=True, text=True)
    complaints = re.findall(r"^(.*?: error: .*)$", found.stderr, re.MULTILINE)
    if (found.returncode == 0) != (complaints == []):
        raise AssertionError(f"clang-format ended with {found.returncode}:\n{found.stderr}")
    return complaints


@unittest.skipUnless(formatter(), f"clang-format {VERSION} is not installed")
class Formatting(unittest.TestCase):
    def test_every_source_is_formatted(self):
        files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".cpp", ".hpp")]
        self.assertGreater(len(files), 500)
        self.assertEqual(misformatted(files), [], "clang-format -i FILE mends these")

    def test_what_is_not_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            shutil.copy(ROOT / ".clang-format", folder)
            (folder / "right.cpp").write_text("int* x = nullptr;\n")
            (folder / "wrong.cpp").write_text("int *x=nullptr;\n")
            self.assertEqual(misformatted([folder / "right.cpp"]), [])
            found = misformatted([folder / "right.cpp", folder / "wrong.cpp"])
            self.assertGreater(len(found), 0)
            self.assertEqual([line for line in found if "wrong.cpp:1:" not in line], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
