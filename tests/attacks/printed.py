"""Names that are commands, markup, formulas and escape sequences: what is printed shows them, and can be pasted.

A told command line is run by bash, with a `manyworlds` on PATH that says which words it was given. Usage: printed.py [all];
without that word every fourth name of each kind is tried."""

import csv
import html.parser
import io
import itertools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
import unittest

import h5py
import numpy

from fake_commands import fake_command
from program import PROGRAM, SWEEPS, environment_in, xxh3
from tally import Tally

TINY = (SWEEPS / "tiny.yaml").read_text()
SHELL = ["my sweep", "it's", 'say "no"', "x; touch PWNED #", "$(touch PWNED)", "`touch PWNED`", "a&touch PWNED", "!!", "*",
         "~", "--store", "a\\nb", "-rf", "$HOME", "{a,b}", "=ls"]
MARKUP = ["<script>alert(1)</script>", "</title><img src=x onerror=alert(1)>", "&lt;b&gt;", '" onload="x', "a|b", "`code`",
          "[x](javascript:alert(1))", "https://evil.example", "# heading", "*bold*", "```"]
FORMULAS = ["=1+1", '=HYPERLINK("x","y")', "+1+1", "-1+1", "@SUM(1)"]
TURNING = ["abc\u202efed", "\u2066x", "\u200fy", "\u061cz"]
CONTROL = ["\x1b[31mred", "\x1b]0;owned\x07", "\u009b2J", "\x9b".encode("latin-1").decode("utf-8", "surrogateescape"), "a\nb",
           "a\n$(touch PWNED)\n", "\ta", "a\r\nb", "\x7f", "\udcff\udcfe", "\x01"]
SOME = slice(None) if sys.argv[1:] == ["all"] else slice(None, None, 4)
NAMES = SHELL[SOME] + MARKUP[SOME] + FORMULAS[SOME] + TURNING[SOME]  # of sweeps: one line, without control characters
ALL = NAMES + CONTROL[SOME]
TABLES = ["experiments", "excluded", "subsimulations/collectives", "subsimulations/kernels"]


def is_binary(name):
    """Whether a file may have the name and JSON cannot hold it."""
    return any("\udc80" <= c <= "\udcff" for c in name)


def is_visible(text):
    """Whether a terminal shows `text`, bytes, as it is and from left to right."""
    try:
        return not [c for c in text.decode().replace("\r\n", "\n") if (unicodedata.category(c) == "Cc" and c not in "\n\t")
                    or unicodedata.category(c) in ("Zl", "Zp") or c in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
                    "\u2066\u2067\u2068\u2069"]
    except UnicodeDecodeError:
        return False


def shown(name):
    """What is made of `name` where it is shown in text of several lines."""
    text = ""
    for c in name:
        if "\udc80" <= c <= "\udcff":
            text += f"\\x{ord(c) - 0xdc00:02x}"
        else:
            text += c if c in "\n\t" or is_visible(c.encode()) else f"\\u{ord(c):04x}"
    return text.replace("\\u000d\n", "\r\n")


class Elements(html.parser.HTMLParser):
    """The elements of a page, and its first heading."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.heading, self.within = [], "", False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, sorted(name for name, _ in attrs)))
        self.within |= tag == "h1"

    def handle_endtag(self, tag):
        self.within &= tag != "h1"

    def handle_data(self, data):
        self.heading += data if self.within else ""


def plain(markdown):
    """The text of a line of Markdown that has no markup; asserts that there is none."""
    assert not re.search(r"<|(?<!\\)[`*_\[\]#~]", markdown), markdown
    text = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def utf8(text):
    """The type of texts as long as `text`, bytes, in our files."""
    return h5py.string_dtype("utf-8", max(1, len(text)))


def rewrite_texts(path, text):
    """Every text of every table of results becomes `text`, as well as the name of the sweep, with a seal that fits."""
    path.write_bytes(path.read_bytes()[:-struct.calcsize("<8sQQ")])
    with h5py.File(path, "a", libver=("earliest", "v108")) as file:
        texts = []
        file.visititems(lambda name, item: texts.append(name) if isinstance(item, h5py.Dataset) and item.dtype.kind == "S"
                        and not name.endswith(("status", "fidelity", "key")) else None)
        for name in texts:
            old, attributes, value = file[name], dict(file[name].attrs), text
            if name == "spec":
                quoted = json.dumps(text.decode("utf-8", "replace")).encode()
                value = old[()].replace(b"name: tiny", b"name: " + quoted)
            shape = old.shape
            del file[name]
            made = file.create_dataset(name, data=numpy.full(shape, value, dtype=utf8(value)))
            for key, attribute in attributes.items():
                made.attrs.create(key, numpy.array(attribute, dtype=utf8(attribute)))
    body = path.read_bytes()
    path.write_bytes(body + struct.pack("<8sQQ", b"MWSEALED", len(body), xxh3(body)))


class Printed(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-printed-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "bin").mkdir()
        self.number = itertools.count()

    def place(self):
        """A new empty folder."""
        folder = self.directory / f"place{next(self.number)}"
        folder.mkdir()
        return folder

    def call(self, folder, *words, program=PROGRAM, **environment):
        """As bytes: what it prints may be no text."""
        return subprocess.run([program, *map(str, words)], cwd=folder, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, env=environment_in(self.directory, **environment))

    def finished(self, folder, name="tiny", *words):
        """A finished run in `folder`, of a sweep of that name."""
        (folder / "sweep.yaml").write_text(TINY.replace("name: tiny", f"name: {json.dumps(name)}"))
        done = self.call(folder, "sweep", "sweep.yaml", "-j", 1, "--in-process", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def pasted(self, folder, line):
        """The words that bash gives to `manyworlds` when somebody pastes `line`."""
        heard = folder / "heard"
        heard.unlink(missing_ok=True)
        fake_command(self.directory / "bin", "manyworlds", f'printf "%s\\0" "$@" >"{heard}"', "/dev/null")
        subprocess.run(["bash", "-c", line], cwd=folder, timeout=10, stdin=subprocess.DEVNULL, capture_output=True,
                       env={**os.environ, "PATH": f"{self.directory}/bin:/usr/bin:/bin"})
        return os.fsdecode(heard.read_bytes()).split("\0")[:-1] if heard.exists() else None

    def told(self, output, folder, words, tally, sort, name):
        """Notes whether the command lines told in `output` are visible, mean `words` and harm nothing."""
        lines = [line.decode() for line in re.findall(rb"`(manyworlds resume .*)` (?:resumes it|computes)", output)]
        heard = [self.pasted(folder, line) for line in lines]
        tally.note(sort, lines and is_visible(output) and all(each == words for each in heard) and not self.harmed(folder),
                   f"{name!r}: {output!r}: {heard}")

    def harmed(self, folder):
        return list(folder.rglob("PWNED"))

    def test_a_run_goes_on_by_the_line_that_is_told_whatever_its_directory_and_store_are_called(self):
        tally = Tally("told lines, by name")
        for name in ALL:
            folder, operand = self.place(), f"./{name}" if name.startswith("-") else name
            store = f"store {name}"
            self.finished(folder, "tiny", "-o", name, "--store", store)
            status = json.loads((folder / name / "status.json").read_text())
            tally.note("status.json", self.pasted(folder, status["resume"]) == ["resume", operand, "--store", store]
                       and is_visible(status["resume"].encode()) and "\n" not in status["resume"], status["resume"])
            status["state"] = "drained"
            status["resume"] = "manyworlds resume x; touch PWNED"  # as somebody else could have written it
            (folder / name / "status.json").write_text(json.dumps(status))
            done = self.call(folder, "status", operand)
            if is_binary(name):
                tally.note("status", is_visible(done.stdout), done.stdout)
            else:
                words = ["resume", operand, "--store", str(folder / store)]
                self.told(done.stdout, folder, words, tally, "status", name)
            json.loads(self.call(folder, "status", operand, "--json").stdout)
        tally.check(self)

    def test_shards_that_are_missing_are_told_so_that_the_line_can_be_pasted(self):
        tally = Tally("merge, by name")
        for name in ALL:
            folder, operand = self.place(), f"./{name}" if name.startswith("-") else name
            self.finished(folder, "tiny", "-o", "one", "--store", "none", "--shard", "1/2")
            done = self.call(folder, "merge", "one", "-o", name)
            self.assertEqual(done.returncode, 75, done.stderr)
            self.told(done.stderr, folder, ["resume", operand], tally, "merge", name)
        tally.check(self)

    def test_the_line_told_of_what_is_missing_computes_it(self):
        tally = Tally("told lines, run")
        for name, words in (("a run; touch PWNED", ("-j", 1, "--in-process")), ("-rf", ("-j", 2))):
            folder = self.place()
            (folder / "sweep.yaml").write_text(TINY)
            shard = self.call(folder, "sweep", "sweep.yaml", "-o", "one", "--shard", "1/2", "--store", "none", "-j", 1)
            self.assertEqual(shard.returncode, 0, shard.stderr)
            line, = re.findall(rb"`(manyworlds resume .*)` computes", self.call(folder, "merge", "one", "-o", name).stderr)
            (self.directory / "bin" / "manyworlds").unlink(missing_ok=True)
            (self.directory / "bin" / "manyworlds").symlink_to(PROGRAM)
            done = subprocess.run(["bash", "-c", line.decode() + " --store none " + " ".join(map(str, words))], cwd=folder,
                                  capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                                  env=environment_in(self.directory, PATH=f"{self.directory}/bin:{os.environ['PATH']}"))
            (self.directory / "bin" / "manyworlds").unlink()
            said = json.loads((folder / name / "complete.json").read_text())
            tally.note("resumed", done.returncode == 0 and said["state"] == "complete" and not self.harmed(folder), done)
        tally.check(self)

    def test_names_of_sweeps_are_text_wherever_they_are_shown(self):
        tally = Tally("names of sweeps, by place")
        base = self.place()
        self.finished(base, "tiny", "-o", "run", "--store", "none")
        self.call(base, "report", "run")
        elements = Elements((base / "run/report.html").read_text()).elements
        for name in NAMES:
            folder = self.place()
            done = self.finished(folder, name, "-o", "run", "--store", "none")
            tally.note("sweep", is_visible(done.stdout + done.stderr), name)
            for words in (["status", "run"], ["status", "run", "--json"], ["top", "run"], ["top", "run", "--json"],
                          ["compare", "run", 0, 1], ["compare", "run", 0, 1, "--json"],
                          ["export", "run", "--csv"], ["report", "run"], ["report", "run", "--md"],
                          ["slurm", "sweep.yaml", "-o", "run", "--tasks-per-node", 1]):
                done = self.call(folder, *words)
                whole = done.returncode == 0 and is_visible(done.stdout + done.stderr)
                if "--json" in words:
                    json.loads(done.stdout)
                tally.note(f"{words[0]}{' --json' if '--json' in words else ''}", whole, (name, done))
            page = Elements((folder / "run/report.html").read_text())
            tally.note("page", page.elements == elements and page.heading == shown(name), (name, page.heading))
            title = (folder / "run/report.md").read_text().splitlines()[0]
            tally.note("Markdown", title.startswith("# ") and plain(title[2:]) == shown(name), title)
            script = (folder / "run.slurm/sweep.sh").read_text()
            tally.note("job's name", re.search(r"^#SBATCH --job-name=[-.\w]+$", script, re.MULTILINE), script)
        tally.check(self)

    def test_a_status_of_somebody_else_is_text(self):
        tally = Tally("status.json, by member")
        folder = self.place()
        self.finished(folder, "tiny", "-o", "run", "--store", "none")
        path = folder / "run/status.json"
        whole = path.read_text()
        lines = self.call(folder, "status", "run").stdout.count(b"\n")
        for name in (one for one in ALL if not is_binary(one)):
            for member in ("host", "state", "layout", "kind", "resume"):
                status = json.loads(whole)
                if member == "layout":
                    status["ranking"]["rows"][0]["layout"] = name
                elif member == "kind":
                    status["kinds"][0]["name"] = name
                else:
                    status[member] = name
                path.write_text(json.dumps(status))
                done, as_json = self.call(folder, "status", "run"), self.call(folder, "status", "run", "--json")
                if member == "state":  # one that no run says is refused by a line
                    tally.note(member, (done.returncode, as_json.returncode) == (2, 2) and is_visible(done.stderr) and
                               done.stderr.count(b"\n") == 1, (name, done))
                    continue
                tally.note(member, done.returncode == 0 and is_visible(done.stdout) and done.stdout.count(b"\n") == lines
                           and is_visible(as_json.stdout), (name, done))
                told = json.loads(as_json.stdout)
                if member == "host":
                    tally.note("host --json", told["host"] == name, told["host"])
                if member == "resume":
                    tally.note("resume --json", told["resume"] == "manyworlds resume run --store none", told["resume"])
        tally.check(self)

    def test_texts_of_results_of_somebody_else_are_text(self):
        tally = Tally("results.h5, by verb")
        base = self.place()
        self.finished(base, "tiny", "-o", "run", "--store", "none")
        for name in ALL:
            folder = self.place()
            shutil.copytree(base / "run", folder / "run")
            rewrite_texts(folder / "run/results.h5", os.fsencode(name))
            for words in [["top", "run"], ["top", "run", "--json"], ["compare", "run", 0, 1], ["compare", "run", 0, 1, "--json"],
                          ["report", "run"], ["report", "run", "--md"]] + [["export", "run", "--csv", "--table", table]
                                                                          for table in TABLES]:
                done = self.call(folder, *words)
                tally.note(words[0], done.returncode == 0 and is_visible(done.stdout + done.stderr), (name, words, done))
                if words[0] != "export":
                    continue
                rows = list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))
                cells = {cell for row in rows[1:] for cell in row}
                wrong = [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))
                         and not re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", cell)]
                there = [cell for cell in cells if shown(name) in cell]
                tally.note("cells", len({len(row) for row in rows}) == 1 and not wrong and there,
                           (name, words, wrong, rows[:2]))
            page, markdown = (folder / "run/report.html").read_bytes(), (folder / "run/report.md").read_bytes()
            of_data = re.sub(rb"<script.*?</script>", b"", page, flags=re.DOTALL)
            tally.note("page", is_visible(of_data) and "img" not in {tag for tag, _ in Elements(of_data.decode()).elements},
                       (name, "page"))
            text = re.sub(r"(?ms)^(`{3,})yaml\n.*?\n\1$", "", markdown.decode())
            tables = [block.splitlines() for block in re.findall(r"(?m)(?:^\|.*\n)+", text)]
            even = all(len({len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) for line in table}) == 1 for table in tables)
            tally.note("Markdown", is_visible(markdown) and even and tables and not re.search("<(script|img|b>)", text),
                       (name, "Markdown"))
        tally.check(self)

    def test_batch_scripts_do_nothing_but_what_they_are_for_wherever_the_program_is(self):
        tally = Tally("batch scripts, by place")
        for name in [one for one in NAMES if "/" not in one]:
            folder = self.place()
            (folder / name).mkdir()
            program = folder / name / "manyworlds"
            shutil.copy(PROGRAM, program)
            (folder / "sweep.yaml").write_text(TINY)
            done = self.call(folder, "slurm", "sweep.yaml", "-o", "run", "--tasks-per-node", 1, "--array", 1, program=program)
            self.assertEqual(done.returncode, 0, done.stderr)
            calls = folder / "calls"
            program.unlink()  # the shell that starts it would hold it
            fake_command(program.parent, "manyworlds", f'printf "%s\\0" "$@" >"{folder}/heard"\nexit 75', calls)
            fake_command(self.directory / "bin", "scontrol", "", calls)
            fake_command(self.directory / "bin", "squeue", "", calls)
            environment = {**os.environ, "PATH": f"{self.directory}/bin:/usr/bin:/bin", "SLURM_JOB_ID": "17"}
            life = subprocess.run(["bash", folder / "run.slurm/sweep.sh"], cwd=folder, capture_output=True, timeout=30,
                                  env=environment)
            said, = re.findall(r"goes on, or: (.*)\n", life.stdout.decode())
            (folder / "heard").unlink()
            subprocess.run(["bash", "-c", said], cwd=folder, timeout=10, env=environment)
            words = (folder / "heard").read_text().split("\0")[:-1]
            tally.note("sweep.sh", (life.returncode, words) == (75, ["resume", f"{folder.resolve()}/run"])
                       and not self.harmed(folder), (name, life, words))
            (folder / "run.shards/1-of-1").mkdir(parents=True)
            merge = subprocess.run(["bash", folder / "run.slurm/merge.sh"], cwd=folder, capture_output=True, timeout=30,
                                   env=environment)
            tally.note("merge.sh", merge.returncode == 75 and b"again: sbatch" in merge.stdout and not self.harmed(folder),
                       (name, merge))
            told = done.stdout.decode()
            tally.note("sbatch", is_visible(done.stdout) and told.startswith("sbatch --dependency"), told)
        tally.check(self)

    def test_an_error_is_one_visible_line_whatever_it_names(self):
        tally = Tally("errors, by word")
        folder = self.place()
        self.finished(folder, "tiny", "-o", "run", "--store", "none")
        for name in ALL:
            for words in ([name], ["sweep", f"./{name}"], ["status", f"./{name}"], ["top", "run", "--by", f"x{name}"],
                          ["top", "run", "--where", f"x{name} < 1"], ["export", "run", "--csv", "--table", f"x{name}"],
                          ["run", "sweep.yaml", "--set", f"strategy.tp=x{name}"], ["compare", "run", f"x{name}", 1],
                          ["merge", "run", "-o", "run", f"--x{name}"], ["list", f"x{name}"], ["store", f"x{name}"],
                          ["sweep", "sweep.yaml", "-o", f"sweep.yaml/{name}"], ["resume", f"./{name}"],
                          ["report", "run", "-o", f"nowhere/{name}"], ["diff", "run", f"./{name}"]):
                done = self.call(folder, *words)
                said = done.stderr
                tally.note(words[0] if len(words) > 1 else "a verb", done.returncode in (2, 74) and is_visible(said)
                           and said.count(b"\n") == 1 and not done.stdout, (words, done))
        tally.check(self)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
