"""Text files that somebody else wrote: sweeps, tables, catalogs, and what a run directory says of itself. Each is read
or refused in one line, in 1 GiB of address space: no signal, no internal error, no waiting for ever."""

import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
import unittest

from program import PROGRAM, environment_in, run
from tally import Tally

MOST_BYTES = 8 << 20
ADDRESS_SPACE = 1 << 30
PATIENCE_S = 240  # a try that hangs; generous, as the machine may be busy

STRATEGY = "strategy: {micro_batch: 1, global_batch: 32}"
BASE = ("base: {model: gpt3-1.3b, cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 8, nic_gbps: 400}, "
        f"{STRATEGY}}}\n")
GPU = "source: s\ncertainty: read\nvalues: {matrix_tflops: 100, memory_gib: 10}\n"


def with_base(part):
    return BASE.replace(STRATEGY, f"{part}, {STRATEGY}")


def filled(pattern, opening="", end="", most=MOST_BYTES):
    return opening + pattern * ((most - len(opening) - len(end)) // len(pattern)) + end


def wide_axes(points):
    keys = ("strategy.tp", "strategy.pp", "strategy.micro_batch", "strategy.global_batch")
    return BASE + "axes:\n" + "".join(f'  {key}: {{range: [1, {most}, "+1"]}}\n' for key, most in zip(keys, points))


# Each is made when it is its turn: together they are half a gigabyte.
YAML = {
    "anchors around a list": lambda: ("base: " + "".join(f"&a{i} [" for i in range(60)) + ",".join(["1"] * 900_000)
                                      + "]" * 60),
    "fewer anchors around a list": lambda: ("base: " + "".join(f"&a{i} [" for i in range(60))
                                            + ",".join(["1"] * 200_000) + "]" * 60),
    "a billion laughs": lambda: "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)),
    "a long text many times": lambda: "a: &a " + "x" * 4_000_000 + "\nb: [" + "*a," * 1_000_000 + "]\n",
    "a long text some times": lambda: "a: &a " + "x" * 4_000_000 + "\nb: [" + "*a," * 1_000 + "]\n",
    "48 mappings of 9,999 keys": lambda: "".join(
        "- {" + ",".join(f"k{i}: 1" for i in range(9999)) + "}\n" for _ in range(48)),
    "a flat list of 8 MiB": lambda: filled("1,", "[", "1]"),
    "the most signs in one list": lambda: filled("1,", "[", "1]", 1_999_990),
    "the most brackets": lambda: "[" * 999_999,
    "the most braces": lambda: "{" * 999_999,
    "the most aliases": lambda: "[&a 1," + "*a," * 499_990 + "1]",
    "the most quotes": lambda: filled("'' ", "[", "]", 1_499_000),
    "a block list of 8 MiB": lambda: filled("- 1\n"),
    "lists in lists": lambda: "base: " + "[" * 100_000,
    "dashes": lambda: "base:\n  " + "- " * 100_000 + "1",
    "question marks": lambda: "? " * 100_000 + "1",
    "braces": lambda: "{" * 50_000,
    "colons": lambda: filled(": "),
    "directives": lambda: filled("%TAG ! a\n"),
    "documents": lambda: filled("---\n"),
    "a key of 7 MB": lambda: "a" * 7_000_000 + ": 1\n",
    "a key beyond 8 MiB": lambda: "a" * 10_000_000 + ": 1\n",
    "comments": lambda: filled("#\n"),
    "a text of many lines": lambda: filled("a\n"),
    "an integer beyond 64 bits": lambda: BASE + "axes: {strategy.tp: [99999999999999999999999999]}\n",
    "the largest integer": lambda: BASE + "axes: {strategy.tp: [9223372036854775807]}\n",
    "a batch of the largest integer": lambda: BASE.replace("global_batch: 32", "global_batch: 9223372036854775807"),
    "two billion nodes": lambda: BASE.replace("nodes: 2", "nodes: 2000000000"),
    "no number": lambda: BASE.replace("nic_gbps: 400", "nic_gbps: .nan"),
    "infinity": lambda: BASE.replace("nic_gbps: 400", "nic_gbps: .inf"),
    "a negative rate": lambda: BASE.replace("nic_gbps: 400", "nic_gbps: -1e308"),
    "escaped controls": lambda: BASE + 'name: "\\u202e\\u0000x"\n',
    "a zero byte": lambda: 'name: "a\0b"\n' + BASE,
    "an axis of 1e9": lambda: wide_axes((1_000_000_000,)),
    "axes of 1e8": lambda: wide_axes((10_000, 10_000)),
    "axes of 1e16": lambda: wide_axes((10_000, 10_000, 10_000, 10_000)),
    "a sample of 1e16": lambda: wide_axes((10_000,) * 4) + "sample: {experiments: 1000000000, seed: 1}\n",
    "a name above": lambda: "name: ../../x\n" + BASE,
    "parentheses": lambda: BASE + 'axes: {strategy.tp: [1]}\nwhere: ["' + "(" * 100_000 + "1" + ")" * 100_000 + '"]\n',
    "minus signs": lambda: BASE + 'axes: {strategy.tp: [1]}\nwhere: ["' + "-" * 500_000 + '1"]\n',
    "nots": lambda: BASE + 'axes: {strategy.tp: [1]}\nwhere: ["' + "not " * 200_000 + 'true"]\n',
    "division by zero": lambda: BASE + 'axes: {strategy.tp: [1]}\nwhere: ["strategy.tp / 0 == 1", "strategy.tp % 0 == 0"]\n',
    "overflow": lambda: (BASE + 'axes: {strategy.tp: [1]}\nwhere: ["9223372036854775807 * 9223372036854775807 + '
                         'strategy.tp > 0", "-9223372036854775807 - 10 < 0"]\n'),
}
# What a sweep names as a file, and what stands there: a text, or a path that is there.
NAMED = {
    "a pipe without a writer": ("topology: {graph: {file: pipe}}", None),
    "a folder": ("topology: {graph: {file: /}}", None),
    "a device without an end": ("topology: {graph: {file: /dev/zero}}", None),
    "chance": ("routing: {measured: {file: /dev/urandom}}", None),
    "a link to itself": ("topology: {graph: {file: loop}}", None),
    "a graph that lies": ("topology: {graph: {file: file}}",
                          lambda: "1048576 8 0 1 9999999 H100\n1048575\n0 1048575 400Gbps 0.0005ms 0\n"),
    "a graph of the most nodes": ("topology: {graph: {file: file}}",
                                  lambda: "1048576 1 0 1048575 0 H\n" + " ".join(map(str, range(1, 1_048_576)))),
    "a graph of many links": ("topology: {graph: {file: file}}",
                              lambda: "18 8 0 2 400000 H\n16 17\n" + "0 16 1Gbps 1ms 0\n" * 400_000),
    "rates out of range": ("topology: {graph: {file: file}}",
                           lambda: "3 2 0 1 2 H\n2\n0 2 99999999999999999999Tbps 0ms 0\n1 2 -1Gbps nanms 0\n"),
    "a table of one column": ("routing: {measured: {file: file}}", lambda: filled("1\n", "layer\n")),
    "a table of commas": ("routing: {measured: {file: file}}", lambda: filled(",")),
    "a table of ends of lines": ("routing: {measured: {file: file}}", lambda: filled("\n")),
    "a quote without an end": ("routing: {measured: {file: file}}", lambda: filled("a\n", '"')),
    "the most loads": ("routing: {measured: {file: file}}", lambda: "layer,expert,tokens\n" + "".join(
        f"{i % 3},{i // 3},1\n" for i in range(299_997))),
    "a schedule of commas": ("strategy: {pp: 4, schedule: written, schedule_file: file}", lambda: filled(",")),
    "a schedule of one action": ("strategy: {pp: 4, schedule: written, schedule_file: file}", lambda: filled("0F0,")),
    "a schedule of many": ("strategy: {pp: 4, schedule: written, schedule_file: file}", lambda: "\n".join(
        ",".join(f"{rank}{kind}{i}" for kind in "FB" for i in range(100_000)) for rank in range(4))),
}
# Files of a catalog by path.
CATALOGS = {
    "like itself": {"clusters/a.yaml": b"like: a\n"},
    "like each other": {"clusters/a.yaml": b"like: b\n", "clusters/b.yaml": b"like: a\n"},
    "constants of each other": {"gpus/a.yaml": GPU.encode() + b"constants_of: b\n",
                                "gpus/b.yaml": GPU.encode() + b"constants_of: a\n"},
    "constants of nobody": {"gpus/a.yaml": GPU.encode() + b"constants_of: nobody\n"},
    "no UTF-8": {"gpus/x.yaml": b"\xff\xfe"},
    "nothing": {"gpus/x.yaml": b""},
    "a list": {"models/x.yaml": b"[1,2]"},
    "HTML": {"models/<b>.yaml": b"layers: 1e999\n"},
    "dots": {"models/..yaml": b"{}"},
    "a name that is no text": {b"gpus/\xff.yaml".decode("utf8", "surrogateescape"): GPU.encode()},
    "a name of two lines": {"gpus/a\nb.yaml": GPU.encode()},
    "a name of controls": {"gpus/\x1b[31m.yaml": GPU.encode()},
    "a source of 8 MB": {"gpus/x.yaml": b"source: " + b"s" * 8_000_000 + b"\ncertainty: read\nvalues: {memory_gib: 1}\n"},
    "a flat list": {"gpus/x.yaml": filled("1,", "[", "1]").encode()},
    "1,001 files": {f"gpus/g{i}.yaml": GPU.encode() for i in range(1001)},
}


def statuses(good):
    """Texts of a status.json by what is wrong with them."""
    def changed(**members):
        return json.dumps({**good, **members})
    return {
        "half": json.dumps(good)[:200],
        "null": "null",
        "a list": "[]",
        "nothing": "",
        "a number for the state": '{"state": 5}',
        "200,000 lists": '{"state": "complete", "x": ' + "[" * 200_000 + "]" * 200_000 + "}",
        "beyond a double": json.dumps(good).replace(f'"updated": {good["updated"]}', '"updated": 1e400'),
        "beyond an integer": changed(updated=2**64 - 1),
        "negative counts": changed(total=-1, done=-5),
        "a load of two lengths": changed(load={**good["load"], "rank": [1, 2, 3]}),
        "a load of texts": changed(load={name: ["x"] for name in good["load"]}),
        "a ranking of nothing": changed(ranking={"rows": [{}]}),
        "a ranking of texts": changed(ranking={**good["ranking"], "rows": "x"}),
        "kinds of nothing": changed(kinds=[{}]),
        "another format": changed(format=good["format"] + 1),
        "20 MB": changed(x="a" * 20_000_000),
    }


COMPLETIONS = ["", "null", "[]", "{}", '{"format": 1, "exit": "0"}', '{"format": 1, "exit": 4096}',
               '{"format": 1, "exit": 74, "reason": 5}', '{"exit": ' + "[" * 200_000]


class TextFiles(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-text-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.tally = Tally("text files of others")

    def attempt(self, sort, name, *words, codes=(0, 2)):
        """One try: its exit code, and that a refusal is one line of words."""
        command = [PROGRAM, *map(str, words)]
        try:
            done = subprocess.run(command, cwd=self.directory, timeout=PATIENCE_S, capture_output=True,
                                  stdin=subprocess.DEVNULL, env=environment_in(self.directory),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE,) * 2))
        except subprocess.TimeoutExpired:
            self.tally.note(sort, False, f"{name}: not over in {PATIENCE_S} s")
            return None
        said = done.stderr.decode("utf8", "replace")
        one_line = done.returncode == 0 or (said.count("\n") == 1 and said.endswith("\n"))
        self.tally.note(sort, done.returncode in codes and one_line, f"{name}: exit {done.returncode}, {said[-300:]!r}")
        return done

    def put(self, path, contents):
        path = self.directory / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return path

    def test_sweeps_and_the_files_they_name(self):
        for name, text in YAML.items():
            self.attempt("YAML", name, "sweep", "--dry-run", self.put("sweep.yaml", text()))
        os.mkfifo(self.directory / "pipe")
        (self.directory / "loop").symlink_to("loop")
        for name, (part, text) in NAMED.items():
            if text is not None:
                self.put("file", text())
            spec = (BASE.replace(STRATEGY, part.replace("{", "{micro_batch: 1, global_batch: 32, ", 1))
                    if part.startswith("strategy") else with_base(part))
            self.attempt("files that a sweep names", name, "sweep", "--dry-run", self.put("sweep.yaml", spec))
        self.attempt("YAML", "a pipe without a writer", "sweep", "--dry-run", "pipe")
        # Where somebody writes, a pipe is as good as a file.
        read = subprocess.run(["bash", "-c", f'"{PROGRAM}" sweep --dry-run <(cat; sleep 0.2)'], input=BASE.encode(),
                              cwd=self.directory, env=environment_in(self.directory), capture_output=True,
                              timeout=PATIENCE_S)
        self.tally.note("pipes with a writer", read.returncode == 0, read.stderr[-300:])
        self.tally.check(self)

    def test_catalogs(self):
        self.put("sweep.yaml", BASE)
        for name, files in CATALOGS.items():
            shutil.rmtree(self.directory / "catalog", ignore_errors=True)
            for path, contents in files.items():
                self.put(pathlib.Path("catalog") / path, contents)
            self.attempt("catalogs", name, "sweep", "--dry-run", "sweep.yaml", "--catalog", "catalog")
            self.attempt("catalogs", name, "list", "--json", "--catalog", "catalog")
        shutil.rmtree(self.directory / "catalog")
        (self.directory / "catalog").symlink_to("catalog")
        self.attempt("catalogs", "a link to itself", "list", "--catalog", "catalog", codes=(2,))
        self.tally.check(self)

    def test_what_a_run_directory_says(self):
        self.put("sweep.yaml", BASE)
        run("sweep", "sweep.yaml", "-o", "run", "--store", "none", "-j", 1, directory=self.directory)
        good = json.loads((self.directory / "run/status.json").read_text())
        for name, text in statuses(good).items():
            self.put("run/status.json", text)
            self.attempt("status.json", name, "status", "run", codes=(2,))
            self.attempt("status.json", name, "status", "run", "--json", codes=(2,))
        self.put("run/status.json", json.dumps(good)[:-1] + ', "more": [' + "[]," * 2_000_000 + "[]]}")
        self.attempt("status.json", "two million lists more than a status has", "status", "run", codes=(0,))
        self.put("run/status.json", json.dumps({**good, "state": "running"}))
        for text in COMPLETIONS:
            self.put("run/complete.json", text)
            self.attempt("complete.json", text[:40], "status", "run", codes=(2,))
        self.put("run/complete.json", '{"format": 1, "exit": 74, "reason": "the disk is full"}')
        self.attempt("complete.json", "a good one", "status", "run", codes=(0,))
        self.tally.check(self)

    def test_the_live_server_outlives_what_a_run_directory_says(self):
        self.put("sweep.yaml", BASE)
        run("sweep", "sweep.yaml", "-o", "run", "--store", "none", "-j", 1, directory=self.directory)
        good = json.loads((self.directory / "run/status.json").read_text())
        server = subprocess.Popen([PROGRAM, "serve", "run", "0"], cwd=self.directory, stderr=subprocess.PIPE, text=True,
                                  env=environment_in(self.directory))
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stderr.close()))
        port = int(re.search(r"localhost:(\d+)|127\.0\.0\.1:(\d+)", server.stderr.readline()).group(0).split(":")[1])

        def shown():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            try:
                connection.request("GET", "/status.json")
                return json.loads(connection.getresponse().read())
            finally:
                connection.close()

        def put_and_wait(name, text, wanted):
            aside = self.put("run/aside", text)
            aside.rename(self.directory / "run/status.json")
            end = time.monotonic() + PATIENCE_S
            seen = None
            try:
                while time.monotonic() < end and not wanted(seen := shown()):
                    time.sleep(0.05)
                self.tally.note("live server", wanted(seen), f"{name}: {str(seen)[:200]}")
            except (OSError, ValueError) as error:
                self.tally.note("live server", False, f"{name}: {error!r}")

        bad = statuses(good)
        for name in ("null", "a number for the state", "200,000 lists", "beyond a double", "a load of two lengths",
                     "a ranking of nothing", "20 MB"):
            put_and_wait(name, bad[name], lambda seen: seen["state"] == "starting" and "reason" in seen)
            put_and_wait(f"the good one after {name}", json.dumps(good), lambda seen: seen["state"] == "complete")
        self.assertIsNone(server.poll())
        self.tally.check(self)


if __name__ == "__main__":
    unittest.main()
