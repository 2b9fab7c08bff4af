"""`manyworlds compare RUN A B` of a real run: what it says is what results.h5 holds, and adds up."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

import h5py

from program import SWEEPS, run

PARTS = ["forward", "backward", "recompute", "optimizer", "kernels", "host", "slowed", "exposed_tp", "exposed_dp", "exposed_pp",
         "exposed_cp", "exposed_ep", "exposed_other", "exposed_offload", "bubble", "stall"]


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-compare-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        run("sweep", SWEEPS / "tiny.yaml", "-j", 1, "--store", "none", directory=cls.directory)
        with h5py.File(cls.directory / "runs" / "tiny" / "results.h5") as file:
            cls.rows = {name: [value.decode() if isinstance(value, bytes) else value for value in column[:].tolist()]
                        for name, column in file["experiments"].items()}
        cls.axes = ["strategy.tp", "strategy.pp", "strategy.micro_batch", "strategy.recompute"]

    def compare(self, a, b, *words, expect=0, of="runs/tiny"):
        return run("compare", of, a, b, *words, directory=self.directory, expect=expect)

    def test_every_pair_says_what_the_results_hold_and_adds_up_to_the_picosecond(self):
        ids = self.rows["id"]
        self.assertGreater(len(ids), 10)
        for a, b in [(ids[i], ids[-1 - 3 * i]) for i in range(4)] + [(ids[-1], ids[0])]:
            told = json.loads(self.compare(a, b, "--json").stdout)
            differing = {setting["name"]: (setting["a"], setting["b"]) for setting in told["differing"]}
            for axis in self.axes:
                one, other = str(self.rows[axis][a]), str(self.rows[axis][b])
                self.assertEqual(differing.get(axis), (one, other) if one != other else None)
            time = told["time"]
            for side, row in (("a", a), ("b", b)):
                self.assertEqual(told[side]["status"], "ran")
                self.assertEqual(time[side], self.rows["step_time_ps"][row])
                self.assertEqual(sum(part[side] for part in time["parts"]), time[side])
                for part in time["parts"]:
                    self.assertIn(part["name"], PARTS)
                    self.assertAlmostEqual(part[side], self.rows[part["name"] + "_s"][row] * 1e12, delta=1)
                self.assertEqual(told["memory"][side], self.rows["memory_peak_bytes"][row])
                self.assertEqual(sum(part[side] for part in told["memory"]["parts"]), told["memory"][side])
                for name in ("link_hops", "ecn_marks", "pauses", "busiest_link_share"):
                    self.assertEqual(told["network"][name][side], self.rows[name][row])
                for name in ("step_time_s", "tokens_per_s_per_gpu", "mfu"):
                    self.assertEqual(told["metrics"][name][side], self.rows[name][row])
            self.assertEqual(sum(part["difference"] for part in time["parts"]), time["difference"])
            sizes = [abs(part["difference"]) for part in time["parts"]]
            self.assertEqual(sizes, sorted(sizes, reverse=True))
            self.assertEqual(told["faster"], "a" if time["difference"] >= 0 else "b")

    def test_the_tables_add_up_as_they_are_printed(self):
        text = self.compare(0, self.rows["id"][-1]).stdout
        self.assertIn("where the time went, s", text)
        for table in text.split("\n\n")[2:]:
            figures = [re.findall(r"(?<![\w.])[+-]?\d+\.\d+(?! %)(?=\s|$)", line) for line in table.splitlines()[1:]]
            digits = [[int(figure.replace(".", "")) for figure in line[:3]] for line in figures]
            for a, b, difference in digits:
                self.assertEqual(b - a, difference, table)
            for column in zip(*digits):
                self.assertEqual(sum(column[:-1]), column[-1], table)

    def test_what_does_not_fit_is_compared_by_what_is_known_of_it(self):
        spec = "name: big\nbase: {model: gpt3-13b, cluster: {gpu: a100_40, nodes: 1, nic_gbps: 200}}\n" \
               "axes: {strategy.tp: [1, 8], strategy.global_batch: [8]}\nassume: 2021\n"
        (self.directory / "big.yaml").write_text(spec)
        run("sweep", "big.yaml", "-j", 1, "--store", "none", directory=self.directory)
        told = json.loads(self.compare(0, 1, "--json", of="runs/big").stdout)
        self.assertEqual(told["a"]["status"], "out_of_memory")
        self.assertRegex(told["a"]["reason"], r"needs [\d.]+ of [\d.]+ GiB")
        self.assertIsNone(told["time"])
        self.assertIsNone(told["faster"])
        self.assertGreater(told["memory"]["a"], told["memory"]["b"])
        text = self.compare(0, 1, of="runs/big/results.h5").stdout
        self.assertIn("out_of_memory", text)
        self.assertNotIn("where the time went", text)

    def test_what_cannot_be_compared_is_refused(self):
        count = len(self.rows["id"])
        for words, message in [((0, count), f"ids from 0 to {count - 1}"), ((3, 3), "named twice"),
                               ((0, "two"), "'two' is no id"), ((0,), "the ids of two experiments"), ((0, 1, 2), "2")]:
            done = run("compare", "runs/tiny", *words, directory=self.directory, expect=2)
            self.assertIn(message, done.stderr)
            self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1))
        self.assertIn("nowhere", self.compare(0, 1, of="runs/nowhere", expect=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
