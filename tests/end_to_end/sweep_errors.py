"""Bad input ends in exit 2: one line names file, line, key and what would be right, and nothing is made."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import h5py

from program import PATIENCE_S, PROGRAM

GOOD = """\
name: good
base:
  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}
  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}
  topology: {rail_optimized: {oversubscription: 1}}
  strategy: {tp: 2, global_batch: 16}
axes:
  strategy.pp: [1, 2]
where: ["strategy.pp <= 2"]
assume: 2021
"""


def changed(before, after):
    assert GOOD.count(before) == 1, before
    return GOOD.replace(before, after)


# What is wrong, the document, the line that the message must name, and words that must stand in it.
BAD = [
    ("bad YAML", changed("strategy: {tp: 2", "strategy: {tp: [2"), 0, []),
    ("an unknown key", changed("  strategy: {tp: 2", "  strategy: {tpp: 2"), 6, ["tpp", "did you mean 'tp'"]),
    ("an unknown section", changed("where:", "were:"), 9, ["were", "where"]),
    ("a repeated key", changed("name: good\n", "name: good\nname: again\n"), 2, ["name"]),
    ("an unknown model", changed("{like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}", "gpt3-125n"), 3,
     ["gpt3-125n", "gpt3-125m"]),
    ("an unknown GPU", changed("a100_40", "a100_41"), 4, ["a100_41", "a100_40"]),
    ("an unknown topology", changed("rail_optimized", "rail_optimised"), 5, ["rail_optimised", "rail_optimized"]),
    ("a wrong type", changed("tp: 2", "tp: two"), 6, ["tp", "two", "integer"]),
    ("a zero", changed("nodes: 2", "nodes: 0"), 4, ["nodes", "from 1"]),
    ("a negative size", changed("layers: 4", "layers: -4"), 3, ["layers", "-4"]),
    ("an absurd size", changed("nodes: 2", "nodes: 2000000000"), 4, ["nodes"]),
    ("a where that cannot be parsed", changed("strategy.pp <= 2", "strategy.pp <= "), 9, ["where"]),
    ("a where over a key that does not exist", changed("strategy.pp <= 2", "strategy.pq <= 2"), 9, ["strategy.pq"]),
    ("an axis over a key that does not exist", changed("strategy.pp: [1, 2]", "strategy.pq: [1, 2]"), 8,
     ["strategy.pq", "did you mean 'pp'"]),
    ("no valid point", changed("strategy.pp <= 2", "strategy.pp > 2"), 9, ["no valid point", "where 2"]),
    ("values of an axis in base", changed("{tp: 2, ", "{tp: [2, 4], "), 6, ["axes: {strategy.tp: [2, 4]}"]),
    ("a figure that nobody gave", changed(", nic_gbps: 200", ""), 4, ["nic_gbps"]),
]

# Rules of a single experiment, by what breaks them.
RULES = {
    "heads_by_tp": ["strategy.tp=4", "model.heads=6", "model.kv_heads=6", "model.hidden=768"],
    "layers_by_stages": ["strategy.pp=8"],
    "gpus_by_tp_pp": ["cluster.nodes=3", "strategy.tp=4", "strategy.pp=2"],
    "tp_by_node": ["strategy.tp=4", "cluster.gpus_per_node=6", "cluster.nodes=2"],
    "batch_by_replicas": ["strategy.global_batch=7"],
    "sequence_parallel_needs_tp": ["strategy.tp=1", "strategy.sequence_parallel=true"],
    "schedule_fits": ["strategy.virtual_stages=2"],
    "topology_fits": ["topology={fat_tree: {pod_leaves: 2}}"],
    "faults_fit": ["faults.down=gpu0-rail0"],
    "lossless": ["transport.buffer_bytes=400001"],
}


class BadInput(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-errors-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def refused(self, *words, made=()):
        """Runs the program, expects exit 2 and one line, and that nothing was made but `made`; returns the line."""
        before = sorted([*os.listdir(self.directory), *made])
        environment = {**os.environ, "XDG_CACHE_HOME": f"{self.directory}/cache"}
        done = subprocess.run([PROGRAM, *map(str, words)], cwd=self.directory, env=environment, timeout=PATIENCE_S,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2, f"{words}\n{done.stdout}\n{done.stderr}")
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(sorted(os.listdir(self.directory)), before)
        return done.stderr

    def write(self, text, name="bad.yaml"):
        (self.directory / name).write_text(text)
        return name

    def test_the_document_all_others_are_made_from_is_good(self):
        spec = self.write(GOOD, "good.yaml")
        done = subprocess.run([PROGRAM, "sweep", spec, "-o", "run", "-j", "1", "--store", "none"], cwd=self.directory,
                              timeout=PATIENCE_S, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_faults_of_the_document(self):
        for what, text, line, words in BAD:
            for verb in (["sweep", "-o", "run", "-j", "2"], ["sweep", "--dry-run"], ["run"]):
                with self.subTest(what, verb=verb):
                    message = self.refused(verb[0], self.write(text), *verb[1:])
                    self.assertIn(f"bad.yaml:{line}: " if line else "bad.yaml:", message)
                    for word in words:
                        self.assertIn(word, message)

    def test_rules_of_a_single_experiment(self):
        single = GOOD.split("axes:")[0]
        for rule, sets in RULES.items():
            with self.subTest(rule):
                words = [word for one in sets for word in ("--set", one)]
                message = self.refused("sweep", self.write(single), "-o", "run", *words)
                self.assertIn(f"violates rule {rule}: ", message)

    def test_paths(self):
        good = self.write(GOOD, "good.yaml")
        (self.directory / "file").write_text("")
        self.assertIn("nowhere.yaml", self.refused("sweep", "nowhere.yaml"))
        self.assertIn("good.yaml/x.yaml", self.refused("sweep", "good.yaml/x.yaml"))
        self.assertIn("file", self.refused("sweep", good, "-o", "file/run", "-j", 1))
        self.assertIn("file", self.refused("sweep", good, "-o", "file", "-j", 1))
        self.assertIn("--store", self.refused("sweep", good, "-o", "run", "--store", "file/store", "-j", 1))
        self.assertIn("/proc", self.refused("sweep", good, "-o", "run", "--store", "/proc/store", "-j", 1))
        self.assertIn("catalog", self.refused("sweep", good, "-o", "run", "--catalog", "nowhere_catalog"))
        self.assertIn("run", self.refused("resume", "nowhere"))
        self.assertIn("sweep.resolved.json", self.refused("resume", "."))
        if os.geteuid() != 0:
            closed = self.directory / "closed"
            closed.mkdir(mode=0o500)
            self.assertIn("closed", self.refused("sweep", good, "-o", "closed/run", "-j", 1))

    def test_a_directory_with_another_sweep_is_left_alone(self):
        good = self.write(GOOD, "good.yaml")
        other = self.write(changed("global_batch: 16", "global_batch: 32"), "other.yaml")
        subprocess.run([PROGRAM, "sweep", good, "-o", "run", "-j", "1", "--store", "none"], cwd=self.directory,
                       timeout=PATIENCE_S, check=True, capture_output=True)
        before = (self.directory / "run" / "results.h5").read_bytes()
        self.assertIn("run", self.refused("sweep", other, "-o", "run", "-j", 1, "--store", "none"))
        self.assertEqual((self.directory / "run" / "results.h5").read_bytes(), before)

    def test_words(self):
        good = self.write(GOOD, "good.yaml")
        self.assertIn("--no-sharing", self.refused("sweep", good, "--no-sharin"))
        self.assertIn("SPEC is required", self.refused("sweep"))
        self.assertIn("--set", self.refused("sweep", good, "--set", "strategy.tp"))
        self.assertIn("strategy.tp", self.refused("sweep", good, "--set", "strategy.tpp=2"))
        self.assertIn("-j", self.refused("sweep", good, "-o", "run", "-j", 0))
        self.assertIn("--experiment", self.refused("run", good))
        self.assertIn("0 to 1", self.refused("run", good, "--experiment", 2))
        by_rate = ["--experiment", 0, "--set", "skip.rate_tolerance=0.01"]
        self.assertIn("skip.rate_tolerance", self.refused("run", good, *by_rate, "--coupled"))
        self.assertIn("skip.rate_tolerance",
                      self.refused("net", good, *by_rate, "--collective", "all_reduce", "--bytes", "1MiB", "--plain"))

    def test_net(self):
        good = self.write(GOOD, "good.yaml")
        words = ["net", good, "--experiment", 0]
        self.assertIn("--flows", self.refused(*words))
        self.write("src,dst,bytes,start_ps\n0,8,1000,0\n", "flows.csv")
        self.assertIn("flows.csv:2: dst must be an integer from 0 to 7", self.refused(*words, "--flows", "flows.csv"))
        self.assertIn("none.csv", self.refused(*words, "--flows", "none.csv"))
        self.assertIn("all_reduce", self.refused(*words, "--collective", "all_reduc", "--bytes", "1MiB"))
        self.assertIn("bytes", self.refused(*words, "--collective", "all_reduce"))
        self.assertIn("1MiBB", self.refused(*words, "--collective", "all_reduce", "--bytes", "1MiBB"))

    def test_pauses_that_hold_each_other_for_ever_are_explained(self):
        ring = ", ".join(f"router{i}-router{(i + 1) % 7}=0.25" for i in range(7))
        good = self.write(f"""\
name: ring
base:
  model: {{like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}}
  cluster: {{gpu: a100_40, nodes: 7, gpus_per_node: 1, nic_gbps: 100}}
  topology: {{torus: {{x: 7, y: 1}}}}
  faults: {{slow: "{ring}"}}
  transport: {{static_window: {{window_bytes: 1GiB, pfc_xoff_bytes: 10000, pfc_xon_bytes: 5000}}}}
  strategy: {{tp: 1, global_batch: 7}}
axes:
  collectives.all_reduce: [direct, ring]
assume: 2021
""", "ring.yaml")
        cycle = ", ".join(f"router{i}->router{(i + 1) % 7}" for i in range(7))
        self.write("src,dst,bytes,start_ps\n" + "".join(f"{i},{(i + 3) % 7},8000000,0\n" for i in range(7)), "flows.csv")
        for words in ([], ["--plain"], ["--set", "transport.acks=in_band"]):
            message = self.refused("net", good, "--experiment", 0, "--flows", "flows.csv", *words)
            self.assertIn("PFC deadlock", message)
            self.assertIn(cycle, message)
        # In a step it is the step's own failure, and the same under both compositions and in a sweep.
        told = []
        for words in (["run", good, "--experiment", "0"], ["run", good, "--experiment", "0", "--coupled"],
                      ["sweep", good, "-o", "run", "-j", "1", "--store", "none"]):
            done = subprocess.run([PROGRAM, *words], cwd=self.directory, timeout=PATIENCE_S, capture_output=True, text=True)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            told.append(done.stdout)
        with h5py.File(self.directory / "run" / "results.h5") as results:
            self.assertEqual(list(results["experiments/status"]), [b"failed", b"ran"])
            told[2] = results["experiments/reason"][0].decode()
        for text in told:
            self.assertIn("PFC deadlock", text)
            self.assertIn(cycle, text)


if __name__ == "__main__":
    unittest.main()
