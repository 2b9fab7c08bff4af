"""What shells complete, and the manual pages: both are made from the help of the verbs and say what it says."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import PROGRAM, run

USAGE = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
VERBS = re.findall(r"^  (\w+) +\S", USAGE, re.MULTILINE)
ASK = r"""
source /dev/stdin <<<"$script"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_manyworlds
printf '%s\n' "${COMPREPLY[@]}"
"""


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="manyworlds-completion-")
        cls.addClassCleanup(temporary.cleanup)
        cls.directory = pathlib.Path(temporary.name)
        cls.scripts = {shell: run("completion", shell, directory=cls.directory).stdout for shell in ("bash", "zsh", "fish")}

    def completed(self, *words):
        """What bash offers for the last of the words behind `manyworlds`."""
        done = subprocess.run(["bash", "-c", ASK, "bash", PROGRAM, *words], env={"script": self.scripts["bash"], "PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True, cwd=self.directory, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_every_verb_and_every_option_of_its_help_is_completed(self):
        self.assertGreater(len(VERBS), 20)
        self.assertEqual(self.completed(""), [*VERBS, "--help", "--version"])
        self.assertEqual(self.completed("sw"), ["sweep"])
        for verb in VERBS:
            shown = re.findall(r"^ +(?:-\w, |-\w |)(--[\w-]+)(?![\w=-])", run(verb, "-h", directory=self.directory).stdout, re.MULTILINE)
            self.assertIn("--help", shown)
            self.assertEqual([word for word in self.completed(verb, "--")], shown, verb)

    def test_values_are_names_of_the_catalog_words_or_files(self):
        models = run("completion", "names", "models", directory=self.directory).stdout.split()
        self.assertEqual(self.completed("search", "--model", ""), models)
        self.assertEqual(self.completed("search", "--model", "llama3-7"), ["llama3-70b"])
        self.assertEqual(self.completed("search", "--model", "=", "llama3-7"), ["llama3-70b"])  # as bash splits --model=…
        self.assertEqual(self.completed("search", "--model", "="), models)
        self.assertIn("h100_sxm", self.completed("search", "--gpu", ""))
        self.assertEqual(self.completed("sweep", "--assume", ""), ["today", "2021"])
        self.assertEqual(self.completed("store", "v"), ["verify"])
        self.assertEqual(self.completed("list", "mo"), ["models"])
        self.assertEqual(self.completed("sweep", "any"), [])  # a file, which bash completes itself

    def test_other_shells_accept_their_scripts(self):
        for shell in ("zsh", "fish"):
            for verb in VERBS:
                self.assertIn(verb, self.scripts[shell])
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", "/dev/stdin"], input=self.scripts[shell], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        (self.directory / "manyworlds.fish").write_text(self.scripts["fish"])
        folder = pathlib.Path(PROGRAM).parent
        ask = f"set -x PATH {folder} $PATH; source manyworlds.fish; complete -C 'manyworlds search --model llama3-7'; complete -C 'manyworlds sw'"
        done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, cwd=self.directory, timeout=60)
        self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], ["llama3-70b", "sweep"], done.stderr)

    def test_what_is_not_there_is_refused(self):
        for words, wanted in ((["completion"], "of which shell? bash, zsh, fish"), (["completion", "tcsh"], "no completion for 'tcsh'"),
                              (["completion", "names"], "names of which kind?"), (["completion", "names", "model"], "did you mean 'models'"),
                              (["man", "sweeep"], "did you mean 'sweep'"), (["man", "sweep", "-o", "pages"], "leave VERB out")):
            self.assertIn(wanted, run(*words, directory=self.directory, expect=2).stderr)


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="manyworlds-manual-")
        cls.addClassCleanup(temporary.cleanup)
        cls.directory = pathlib.Path(temporary.name)
        run("man", "-o", "man1", directory=cls.directory)

    def shown(self, name):
        """The page as a terminal of 1,000 columns shows it; no warning of groff."""
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=1000n", str(self.directory / "man1" / name)],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), name)
        return re.sub(r"\s+", " ", done.stdout.replace("\u2010", "-").replace("\u2212", "-").replace("\u2019", "'").replace("\u2018", "`"))

    def test_there_is_a_page_for_every_verb(self):
        self.assertEqual(sorted(path.name for path in (self.directory / "man1").iterdir()),
                         sorted(["manyworlds.1", *(f"manyworlds-{verb}.1" for verb in VERBS)]))

    def test_the_programs_page_names_verbs_and_exit_codes(self):
        page = self.shown("manyworlds.1")
        for verb in VERBS:
            self.assertIn(f"manyworlds-{verb}(1)", page)
        for code in (0, 2, 3, 70, 74, 75):
            self.assertRegex(page, rf" {code} [A-Z]")

    def test_a_verbs_page_says_what_its_help_says(self):
        for verb in VERBS:
            page = self.shown(f"manyworlds-{verb}.1")
            # Each description is wrapped over lines behind its option: its first line is enough.
            for option, value, words in re.findall(r"^ +(?:-\w, |-\w )?(--[\w-]+)(?: (\S+))? +(.{1,40}?)(?: \(default.*)?$",
                                                   run(verb, "-h", directory=self.directory).stdout, re.MULTILINE):
                with self.subTest(f"{verb} {option}"):
                    self.assertIn(option, page)
                    self.assertIn(" ".join(words.split()[1:-1]), page)
            self.assertEqual(run("man", verb, directory=self.directory).stdout,
                             (self.directory / "man1" / f"manyworlds-{verb}.1").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
