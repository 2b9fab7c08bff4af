"""The scripts people run: clean by shellcheck, refuse what they do not know, and start from any directory."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from fake_commands import fake_command

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
SCRIPTS = sorted(path for folder in ("script", ".ci", "slurm") for path in (ROOT / folder).glob("*")
                 if path.suffix != ".py" and path.is_file() and path.read_text().startswith("#!"))


def build_with(apt_get, installed, words=()):
    """script/build where apt-get is `apt_get`, only `installed` matches, and cmake does nothing: (result, what was called)."""
    with tempfile.TemporaryDirectory() as directory:
        commands = {
            "dpkg-query": f'case "${{@: -1}}" in {installed}) echo -n installed ;; *) exit 1 ;; esac',
            "apt-get": apt_get, "sudo": '"$@"', "cmake": "",
        }
        for name, body in commands.items():
            fake_command(directory, name, body, f"{directory}/calls")
        done = subprocess.run([str(ROOT / "script/build"), *words], cwd="/", capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"})
        calls = (pathlib.Path(directory) / "calls").read_text().splitlines()
        return done, [call for call in calls if not call.startswith(("dpkg-query", "sudo"))]


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
        for script, words in [("test", ["--al"]), ("test", ["--preset"]), ("demo", ["--fast"]), ("fuzz", ["--shor"]),
                              ("build", ["--all"]), ("release", []), ("release", ["--dry", "1.0.0"]),
                              ("release", ["1.0"]), ("release", ["1.0.0", "1.0.1"])]:
            done = subprocess.run([str(ROOT / "script" / script), *words], cwd="/", capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=10)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"usage: script/{script}", done.stderr)

    def test_only_what_is_missing_is_installed_and_quietly(self):
        done, calls = build_with("echo noise; echo noise >&2", installed="[!c]*")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = (ROOT / "script/packages").read_text().splitlines()
        missing = " ".join(name for name in names if name.startswith("c"))
        self.assertEqual(calls[0], "apt-get -qq update")
        self.assertTrue(calls[1].endswith(f"install --no-install-recommends {missing}"), calls[1])
        self.assertIn(" -y ", calls[1])
        self.assertNotIn("noise", done.stdout + done.stderr)
        self.assertEqual([call.split()[:2] for call in calls[2:]], [["cmake", "--preset"], ["cmake", "--build"]])

    def test_the_program_alone_needs_no_package_of_the_tests(self):
        words = (ROOT / "script/packages").read_text()
        of_program = [line for line in words[:words.index("# For the tests")].splitlines() if not line.startswith("#")]
        done, calls = build_with("", installed="none", words=["--program"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(calls[1].endswith(" " + " ".join(of_program)), calls[1])
        self.assertIn("-D MANYWORLDS_TESTS=OFF", calls[2])
        _, calls = build_with("", installed="*")  # and afterwards the tests are built again
        self.assertIn("-D MANYWORLDS_TESTS=ON", calls[0])

    def test_nothing_is_installed_where_nothing_is_missing(self):
        done, calls = build_with("exit 1", installed="*")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([call.split()[0] for call in calls], ["cmake", "cmake"])

    def test_a_failed_installation_stops_the_build_and_shows_why(self):
        done, calls = build_with("echo no such mirror; exit 100", installed="[!c]*")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such mirror", done.stderr)
        self.assertFalse([call for call in calls if call.startswith("cmake")])

    def test_the_packages_are_named_once_each(self):
        names = [line for line in (ROOT / "script/packages").read_text().splitlines() if not line.startswith("#")]
        self.assertGreater(len(names), 10)
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
