"""The build's fingerprint changes with whatever a result depends on, and with nothing else."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])


def fingerprint(sources, flags="-O3 -ffp-contract=off", compiler="GNU 12.2.0 x86_64"):
    """Of a tree with these files, as the build step makes it."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in sources.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        (root / "list").write_text("\n".join(sources) + "\n")
        subprocess.run(["cmake", "-D", f"ROOT={root}", "-D", f"LIST={root}/list", "-D", f"OUTPUT={root}/out.cpp", "-D",
                        f"COMPILER={compiler}", "-D", f"FLAGS={flags}", "-P", str(ROOT / "cmake/fingerprint.cmake")], check=True)
        return re.search(r'return "([0-9a-f]{64})";', (root / "out.cpp").read_text()).group(1)


class Fingerprint(unittest.TestCase):
    tree = {"core/a.cpp": "int a;\n", "core/a.hpp": "// a; \"[]${}@x@\n", "topologies/b.cpp": "int b;\n"}

    def test_the_same_tree_has_the_same_fingerprint_wherever_it_lies(self):
        self.assertEqual(fingerprint(self.tree), fingerprint(self.tree))

    def test_every_change_changes_it(self):
        changed = [fingerprint(self.tree), fingerprint(self.tree, flags="-O3 -ffp-contract=fast"),
                   fingerprint(self.tree, compiler="GNU 13.1.0 x86_64"),
                   fingerprint({**self.tree, "core/a.cpp": "int a ;\n"}), fingerprint({**self.tree, "core/c.cpp": ""}),
                   fingerprint({"core/a.cpp": "int b;\n", "core/a.hpp": self.tree["core/a.hpp"], "topologies/b.cpp": "int a;\n"}),
                   fingerprint({name: text for name, text in self.tree.items() if name != "topologies/b.cpp"})]
        self.assertEqual(len(set(changed)), len(changed))

    def test_the_build_lists_every_source_of_core_and_topologies_and_no_other(self):
        listed = (BUILD / "core/fingerprint.list").read_text().split()
        there = [str(path.relative_to(ROOT)) for folder in ("core", "topologies") for path in (ROOT / folder).rglob("*")
                 if path.suffix in (".cpp", ".hpp")]
        self.assertEqual(listed, sorted(there))


if __name__ == "__main__":
    unittest.main(verbosity=2)
