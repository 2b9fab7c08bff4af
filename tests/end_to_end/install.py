"""What is installed: a tree that runs wherever it is moved, with sweeps, templates and documents; and recipes for clusters."""

import pathlib
import py_compile
import re
import subprocess
import tempfile
import unittest

from installed_tree import BUILD, ROOT, check_tree, run

PACKAGES = [line for line in (ROOT / "script/packages").read_text().splitlines() if not line.startswith("#")]


class Installed(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="manyworlds-install-")
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    def moved(self, *components):
        """The tree, somewhere else than where it was installed."""
        for words in [(), *(("--component", name) for name in components)]:
            run("cmake", "--install", BUILD, "--prefix", self.directory / "here", *words)
        there = self.directory / "a place" / "of its own"
        there.parent.mkdir()
        (self.directory / "here").rename(there)
        return there

    def test_it_runs_from_where_it_was_moved_and_has_what_people_need(self):
        tree = self.moved()
        check_tree(self, tree, self.directory)
        program, share = tree / "bin/manyworlds", tree / "share/manyworlds"
        run(program, "slurm", share / "sweeps/tiny.yaml", "-o", self.directory / "batch", "--tasks-per-node", 2)
        self.assertIn(f"'{program}' sweep", (self.directory / "batch.slurm/sweep.sh").read_text())

    @unittest.skipUnless((BUILD / "lib/manyworlds/capture").exists(), "built with sanitizers, and without the capture")
    def test_it_has_what_stands_in_for_the_libraries_of_cuda(self):
        tree = self.moved()
        for cuda, folder in ((13, "lib/manyworlds/capture"), (12, "lib/manyworlds/capture/cuda12")):
            for name in (f"libcudart.so.{cuda}", "libnccl.so.2", "libcudnn.so.9", f"libcublas.so.{cuda}", f"libcublasLt.so.{cuda}"):
                self.assertTrue((tree / folder / name).exists(), name)
        done = subprocess.run([tree / "bin/manyworlds", "capture", "--to", self.directory / "captured", "--", "true"],
                              capture_output=True, text=True)
        self.assertIn("called no function of CUDA's runtime", done.stderr)  # it found the libraries, and ran

    def test_it_has_manual_pages_and_completion(self):
        share = self.moved() / "share"
        self.assertIn(".SH NAME\nmanyworlds\\-sweep \\- ", (share / "man/man1/manyworlds-sweep.1").read_text())
        for name in ("bash-completion/completions/manyworlds", "zsh/vendor-completions/_manyworlds",
                     "fish/vendor_completions.d/manyworlds.fish"):
            self.assertIn("sweep", (share / name).read_text())

    def test_the_program_looks_for_libraries_beside_itself_and_nowhere_in_the_build(self):
        tree = self.moved("libraries")
        program = tree / "bin/manyworlds"
        paths = re.search(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "-d", program)).group(1).split(":")
        self.assertTrue(paths[0].startswith("$ORIGIN/../lib"), paths)
        self.assertEqual([path for path in paths if str(BUILD) in path or str(self.directory) in path], [])
        found = dict(re.findall(r"^\s*(lib[\w+-]+)\S* => (\S.*) \(0x", run("ldd", program), re.MULTILINE))
        for library in ("libyaml-cpp", "libfmt", "libmuparserx", "libsqlite3", "libxxhash"):
            self.assertTrue(pathlib.Path(found[library]).resolve().is_relative_to(tree.resolve()), found[library])
        for library, path in found.items():  # the site's
            if library.startswith(("libmpi", "libc", "libm")) and library in ("libmpi", "libc", "libm"):
                self.assertFalse(pathlib.Path(path).resolve().is_relative_to(tree.resolve()), path)
        run(program, "list", "topologies")


class Recipes(unittest.TestCase):
    def test_the_container_names_packages_and_paths_that_there_are(self):
        text = (ROOT / "slurm/manyworlds.def").read_text()
        sections = dict(re.findall(r"^%(\w+)\n(.*?)(?=^%|\Z)", text, re.MULTILINE | re.DOTALL))
        self.assertEqual(list(sections), ["files", "post", "test", "runscript"])
        named = re.search(r"--no-install-recommends((?:\s*\\?\n?\s*[\w+.-]+)+?)\n    cmake", sections["post"]).group(1)
        named = [word for word in named.split() if word != "\\"]
        self.assertGreater(len(named), 10)
        self.assertEqual([name for name in named if name not in PACKAGES], [])
        copied = [line.split()[0] for line in sections["files"].splitlines() if line.strip()]
        self.assertEqual([name for name in copied if not (ROOT / name).exists()], [])
        # All that the build reads is there: every folder that CMake enters, and what is installed.
        cmake = "".join((ROOT / name).read_text() for name in ("CMakeLists.txt", "cmake/installation.cmake"))
        entered = re.findall(r"^add_subdirectory\((\w+)\)|^include\((\w+)/", cmake, re.MULTILINE)
        installed = re.findall(r"^install\((?:DIRECTORY|FILES) ([\w./ ]+?) DESTINATION", cmake, re.MULTILINE)
        needed = {a or b for a, b in entered} | {name.split("/")[0] for names in installed for name in names.split()}
        self.assertGreater(len(needed), 8)
        self.assertEqual(needed - set(copied), set())
        for section in ("post", "test", "runscript"):
            run("sh", "-n", "-c", sections[section])

    def test_the_image_names_packages_and_paths_that_there_are(self):
        text = re.sub(r"\\\n\s*", "", (ROOT / "slurm/Containerfile").read_text())
        named = re.search(r"--no-install-recommends (.*)\n", text).group(1).split()
        self.assertGreater(len(named), 10)
        self.assertEqual([name for name in named if name not in PACKAGES], [])
        copied = [word for words in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for word in words.split()]
        self.assertEqual([name for name in copied if not (ROOT / name).exists()], [])
        definition = (ROOT / "slurm/manyworlds.def").read_text()
        self.assertEqual(sorted(copied), sorted(re.findall(r"^    (\S+) /usr/src/manyworlds/$", definition, re.MULTILINE)))

    def test_the_spack_recipe_compiles_and_names_what_the_build_looks_for(self):
        recipe = ROOT / "slurm/spack/packages/manyworlds/package.py"
        with tempfile.TemporaryDirectory() as directory:
            py_compile.compile(str(recipe), cfile=f"{directory}/recipe.pyc", doraise=True)
        text = recipe.read_text()
        wanted = set(re.findall(r'depends_on\("([\w-]+)', text))
        for needed in ("boost", "cxxopts", "eigen", "fmt", "hdf5", "mpi", "muparserx", "nlohmann-json", "sqlite", "tomlplusplus", "xxhash", "yaml-cpp"):
            self.assertIn(needed, wanted)
        least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertIn(f'"cmake@{least}:"', text)
        self.assertIn("option(MANYWORLDS_TESTS", (ROOT / "CMakeLists.txt").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
