"""The Debian package that cpack makes of a build, and script/release, which makes one of a version."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from fake_commands import fake_command
from installed_tree import BUILD, FILES, ROOT, check_tree, run

TRY = f"""
import manyworlds, pathlib, shutil
shutil.rmtree('tried', ignore_errors=True)
assert manyworlds.run({str(ROOT / 'experiments/sweeps/tiny.yaml')!r}, experiment=0).ran
run = manyworlds.sweep({str(ROOT / 'experiments/sweeps/tiny.yaml')!r}, 'tried', ranks=1, store='none')
assert len(run) == 20 and run.top(1)['status'].iloc[0] == 'ran'
"""
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### New\n- A thing.\n\n## 0.1.0\n\nThe first version.\n"


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
        cls.package, = cls.directory.glob("manyworlds_*.deb")
        cls.python, = cls.directory.glob("python3-manyworlds_*.deb")

    def field(self, name, package=None):
        return run("dpkg-deb", "--field", package or self.package, name).strip()

    def test_pythons_package_needs_the_program_and_runs_beside_it(self):
        self.assertEqual([self.field(name, self.python) for name in ("Package", "Version", "Section")],
                         ["python3-manyworlds", version(), "python"])
        needed = self.field("Depends", self.python).split(", ")
        for words in (f"manyworlds (= {version()})", "python3-h5py", "python3-pandas"):
            self.assertIn(words, needed)
        self.assertTrue([words for words in needed if words.startswith("libyaml-cpp")], needed)  # found by what it is linked with
        there = self.directory / "python"
        for package in (self.package, self.python):
            run("dpkg-deb", "-x", package, there)
        folder = there / "usr/lib/python3/dist-packages"
        self.assertEqual([path for path in there.rglob("*") if path.suffix == ".py" and not path.is_relative_to(folder)
                          and "slurm" not in path.parts], [])
        run("/usr/bin/python3", "-c", TRY, env={**os.environ, "PYTHONPATH": str(folder), "PATH": f"{there}/usr/bin:{os.environ['PATH']}"},
            cwd=self.directory)

    def test_a_wheel_installs_without_root_and_has_the_program(self):
        wheel = run(ROOT / "script/wheel", "--preset", BUILD.name, self.directory / "wheel").strip()
        self.assertRegex(wheel, rf"manyworlds-{version()}-cp3\d+-cp3\d+-linux_\w+\.whl$")
        place = self.directory / "environment"
        run("/usr/bin/python3", "-m", "venv", "--system-site-packages", place)
        run(place / "bin/pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
        run(place / "bin/python", "-c", TRY, env={**os.environ, "PATH": "/usr/bin:/bin"}, cwd=self.directory)

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
        for library in ("libc6", "libhdf5", "libyaml-cpp", "libfmt", "libmuparserx", "libsqlite3", "libxxhash"):
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
        self.assertEqual([path for path, (mode, _) in held.items() if mode[0] != "l" and ("w" in mode[5:] or mode[7] != "r")],
                         [])
        self.assertEqual(sorted(path for path, (mode, _) in held.items() if mode[0] == "l"),
                         [f"usr/lib/manyworlds/capture/{folder}{name} -> libcudart.so.{cuda}"
                          for folder, cuda in (("cuda12/", 12), ("", 13))
                          for name in (f"libcublas.so.{cuda}", f"libcublasLt.so.{cuda}", "libcudnn.so.9",
                                       "libnccl.so.2")
                          if (BUILD / "lib/manyworlds/capture").exists()])
        self.assertEqual([path for path in held if "__pycache__" in path or path.endswith((".a", ".hpp"))], [])

    def test_it_runs_from_where_it_was_extracted(self):
        there = self.directory / "extracted"
        run("dpkg-deb", "-x", self.package, there)
        self.assertTrue(run(there / "usr/bin/manyworlds", "--version").startswith(f"manyworlds {version()} "))
        self.assertIn("llama3-70b", run(there / "usr/bin/manyworlds", "list", "models"))
        self.assertEqual((there / "usr/share/doc/manyworlds/copyright").read_bytes(), (ROOT / "LICENSE").read_bytes())
        check_tree(self, there / "usr", self.directory)


class Release(unittest.TestCase):
    """In a repository with what script/release reads, whose building and packaging is made up."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="manyworlds-release-")
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)
        self.here = self.directory / "clone"
        self.environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
                            "PATH": f"{self.directory}/commands:{os.environ['PATH']}"}
        for name in ("script", "docs"):
            (self.here / name).mkdir(parents=True)
        (self.directory / "commands").mkdir()
        shutil.copy(ROOT / "script/release", self.here / "script")
        lines = (ROOT / "CMakeLists.txt").read_text().replace(f"VERSION {version()} ", "VERSION 0.1.0 ")
        self.write("CMakeLists.txt", lines)
        self.write("docs/CHANGELOG.md", CHANGELOG)
        self.write(".gitignore", "/build/\n")
        program = "build/release/manyworlds"
        for name in ("build", "test"):  # a program that says the version of CMakeLists.txt
            fake_command(self.here / "script", name, 'cd "$(dirname "$0")/.." && mkdir -p build/release && '
                         f"sed -n 's/^project(manyworlds VERSION \\(\\S*\\) .*/echo manyworlds \\1 \"(build)\"/p' CMakeLists.txt >{program} && "
                         f"chmod +x {program}", self.directory / "calls")
        fake_command(self.directory / "commands", "cpack", 'touch "${@: -1}/manyworlds.deb"', self.directory / "calls")
        fake_command(self.here / "script", "wheel", 'touch "$1/manyworlds.whl"', self.directory / "calls")
        for name in ("dpkg-shlibdeps", "file"):
            fake_command(self.directory / "commands", name, "", self.directory / "calls")
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Somebody")
        self.git("config", "user.email", "somebody@example.org")
        self.commit()

    def write(self, name, text):
        (self.here / name).write_text(text)

    def git(self, *words):
        return run("git", "-C", self.here, *words, env=self.environment)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "A state")

    def release(self, *words):
        return subprocess.run([self.here / "script/release", *words], cwd="/", env=self.environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=60)

    def refused(self, *words):
        before = self.git("log", "--format=%H"), self.git("tag"), self.git("status", "--porcelain")
        done = self.release(*words)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual((self.git("log", "--format=%H"), self.git("tag"), self.git("status", "--porcelain")), before)
        return done.stderr

    def test_a_dry_run_says_what_would_be_done_and_does_nothing(self):
        done = self.release("--dry-run", "0.2.0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for part in ("VERSION 0.1.0 becomes 0.2.0", "'## Unreleased' becomes '## 0.2.0 (", "script/test", "v0.2.0", "SHA256SUMS"):
            self.assertIn(part, done.stdout)
        self.assertNotIn("script/test", self.release("--dry-run", "--no-test", "0.2.0").stdout)
        self.assertEqual(self.git("status", "--porcelain", "--ignored") + self.git("tag"), "")
        self.assertFalse((self.directory / "calls").exists())

    def test_a_dirty_tree_is_refused(self):
        self.write("new.txt", "")
        self.assertRegex(self.refused("--dry-run", "0.2.0"), r"changes that are not committed:\n\?\? new.txt")
        (self.here / "new.txt").unlink()
        self.write("docs/CHANGELOG.md", CHANGELOG + "\n")
        self.assertIn("changes that are not committed:\n M docs/CHANGELOG.md", self.refused("0.2.0"))

    def test_a_version_that_is_not_above_the_current_one_is_refused(self):
        for lower in ("0.1.0", "0.0.9"):
            self.assertIn(f"{lower} is not above 0.1.0", self.refused("--dry-run", lower))
        self.write("CMakeLists.txt", (self.here / "CMakeLists.txt").read_text().replace("VERSION 0.1.0 ", "VERSION 0.10.0 "))
        self.commit()
        self.assertIn("0.9.0 is not above 0.10.0", self.refused("--dry-run", "0.9.0"))
        self.assertEqual(self.release("--dry-run", "0.11.0").returncode, 0)

    def test_a_version_that_the_changelog_does_not_tell_of_is_refused(self):
        for text in (CHANGELOG.replace("## Unreleased", "## 0.1.1 (2026-01-01)"), "## Unreleased\n\n## 0.1.0\n\nThe first.\n"):
            self.write("docs/CHANGELOG.md", text)
            self.commit()
            self.assertIn("docs/CHANGELOG.md has nothing below '## Unreleased' that 0.2.0 would be",
                          self.refused("--dry-run", "0.2.0"))
        self.write("docs/CHANGELOG.md", CHANGELOG.replace("## 0.1.0", "## 0.2.0 (2026-01-01)"))
        self.commit()
        self.assertIn("has a section 0.2.0 already", self.refused("--dry-run", "0.2.0"))

    def test_a_tag_that_exists_is_refused(self):
        self.git("tag", "v0.2.0")
        self.assertIn("the tag v0.2.0 exists", self.refused("--dry-run", "0.2.0"))
        self.assertEqual(self.release("--dry-run", "0.2.1").returncode, 0)

    def test_a_release_is_a_commit_a_tag_and_files_with_their_sums(self):
        done = self.release("0.2.0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.git("log", "-1", "--format=%s").strip(), "Version 0.2.0")
        self.assertEqual(self.git("show", "--format=", "--name-only").split(), ["CMakeLists.txt", "docs/CHANGELOG.md"])
        self.assertRegex((self.here / "CMakeLists.txt").read_text(), r"\nproject\(manyworlds VERSION 0\.2\.0 ")
        self.assertRegex((self.here / "docs/CHANGELOG.md").read_text(), r"\n## 0\.2\.0 \(\d{4}-\d\d-\d\d\)\n\n### New\n")
        self.assertEqual(self.git("rev-parse", "v0.2.0^{commit}"), self.git("rev-parse", "HEAD"))
        self.assertIn("### New\n- A thing.\n", self.git("tag", "-l", "--format=%(contents)", "v0.2.0"))
        folder = self.here / "build/releases/0.2.0"
        sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sums, {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
                                for name in ("manyworlds.deb", "manyworlds.whl", "manyworlds-0.2.0.tar.gz")})
        self.assertEqual({path.name for path in folder.iterdir()}, {*sums, "SHA256SUMS"})
        with tarfile.open(folder / "manyworlds-0.2.0.tar.gz") as archive:
            self.assertIn(b"VERSION 0.2.0 ", archive.extractfile("manyworlds-0.2.0/CMakeLists.txt").read())
        called = [line.split()[0] for line in (self.directory / "calls").read_text().splitlines()]
        self.assertEqual(called, ["test", "cpack", "wheel"])

    def test_a_failure_before_the_commit_leaves_the_tree_as_it_was(self):
        fake_command(self.directory / "commands", "cpack", "echo no room; exit 1", self.directory / "calls")
        said = self.release("--no-test", "0.2.0")
        self.assertEqual(said.returncode, 1)
        self.assertIn("no room", said.stderr)
        self.assertEqual(self.git("status", "--porcelain") + self.git("tag"), "")
        self.assertIn("VERSION 0.1.0 ", (self.here / "CMakeLists.txt").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
