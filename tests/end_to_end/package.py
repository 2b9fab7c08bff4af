"""The Debian package that cpack makes of a build."""

import pathlib
import re
import shutil
import tempfile
import unittest

from installed_tree import BUILD, FILES, ROOT, check_tree, run


def version():
    return re.search(r"^project\(manyworlds VERSION (\S+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)


@unittest.skipUnless(all(map(shutil.which, ("cpack", "dpkg-shlibdeps", "file"))), "cpack, dpkg-dev or file is not installed")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="manyworlds-package-")
        cls.addClassCleanup(temporary.cleanup)
        cls.directory = pathlib.Path(temporary.name)
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", cls.directory)
        cls.package, = cls.directory.glob("*.deb")

    def field(self, name):
        return run("dpkg-deb", "--field", self.package, name).strip()

    def test_it_says_what_it_is_and_what_it_needs(self):
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual(self.package.name, f"manyworlds_{version()}_{architecture}.deb")
        self.assertEqual([self.field(name) for name in ("Package", "Version", "Architecture", "Section")],
                         ["manyworlds", version(), architecture, "science"])
        self.assertRegex(self.field("Maintainer"), r"^[^<>]+ <[^<>@ ]+@[^<>@ ]+>$")
        synopsis, *paragraph = self.field("Description").splitlines()
        self.assertLessEqual(len(synopsis), 80)
        self.assertGreater(len(paragraph), 2)
        needed = [words.split()[0] for words in self.field("Depends").split(", ")]
        self.assertEqual(len({"openmpi-bin", "mpich"} & set(needed)), 1, needed)  # what it was built with
        for library in ("libc6", "libhdf5", "libyaml-cpp", "libfmt", "libmuparserx", "libxxhash"):
            self.assertTrue([name for name in needed if name.startswith(library)], f"{library} of {needed}")
        self.assertEqual([name for name in needed if name.endswith("-dev")], [])

    def test_it_holds_the_program_its_documents_and_its_licence(self):
        held = {}
        for line in run("dpkg-deb", "--contents", self.package).splitlines():
            mode, owner, *_, path = line.split(maxsplit=5)
            held[path.removeprefix("./")] = (mode, owner)
        for name in ("bin/manyworlds", "share/doc/manyworlds/copyright", *(f"share/manyworlds/{name}" for name in FILES)):
            self.assertIn(f"usr/{name}", held)
        self.assertEqual(held["usr/bin/manyworlds"], ("-rwxr-xr-x", "root/root"))
        self.assertEqual([path for path in held if not path.startswith("usr/") and path != ""], [])
        self.assertEqual([path for path, (mode, _) in held.items() if "w" in mode[5:] or mode[7] != "r"], [])
        self.assertEqual([path for path in held if "__pycache__" in path or path.endswith((".a", ".hpp"))], [])

    def test_it_runs_from_where_it_was_extracted(self):
        there = self.directory / "extracted"
        run("dpkg-deb", "-x", self.package, there)
        self.assertTrue(run(there / "usr/bin/manyworlds", "--version").startswith(f"manyworlds {version()} "))
        self.assertIn("llama3-70b", run(there / "usr/bin/manyworlds", "list", "models"))
        self.assertEqual((there / "usr/share/doc/manyworlds/copyright").read_bytes(), (ROOT / "LICENSE").read_bytes())
        check_tree(self, there / "usr", self.directory)


if __name__ == "__main__":
    unittest.main(verbosity=2)
