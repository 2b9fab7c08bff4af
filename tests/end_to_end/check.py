"""`check`: real logs beside their predictions, what is refused, and what `--learn` changes in later answers."""

import gzip
import json
import os
import pathlib
import shutil
import stat
import tempfile
import unittest

from program import run

LOGS = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"]) / "tests/experiments/logs"
GIB = 1 << 30


class Check(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-check-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        for path in LOGS.iterdir():
            shutil.copy(path, self.directory)

    def program(self, *words, expect=0):
        return run(*words, directory=self.directory, expect=expect)

    def check(self, *words, **more):
        words = words if "--learned" in words else (*words, "--learned", "none")
        return json.loads(self.program("check", *words, "--json", **more).stdout)

    def torchtitan(self, *words, **more):
        return self.check("torchtitan_h200.log", "torchtitan_h200.yaml", *words, **more)

    def test_a_log_with_its_own_arguments_needs_only_the_machines(self):
        found = self.check("megatron_v100.log", "--gpu", "v100_32")
        self.assertEqual((found["framework"], found["records"], found["warm_up"], found["interval"]),
                         ("Megatron-LM", 19, 1, 10))
        self.assertAlmostEqual(found["measured"]["median_s"], 0.3851)  # the 10th of the 19 behind the first
        self.assertEqual(set(found["memory"]), {"allocated", "reserved"})
        self.assertAlmostEqual(found["memory"]["reserved"]["measured_bytes"], 4746 << 20)
        job = json.loads(self.program("run", "--like", "megatron_v100.log", "--gpu", "v100_32", "--json").stdout)
        self.assertEqual(found["predicted_s"], job["step_time_s"])
        self.assertAlmostEqual(found["published"]["low_s"], job["step_time_low_s"])
        self.assertAlmostEqual(found["published"]["high_s"], job["step_time_high_s"])

    def test_rates_become_times_and_places(self):
        found = self.torchtitan()
        rates = sorted((7026, 7080, 7082, 7072, 7057, 7051, 7042, 7036, 7033, 6856))
        self.assertAlmostEqual(found["measured"]["median_s"], (8192 / rates[4] + 8192 / rates[5]) / 2)
        self.assertAlmostEqual(found["difference"], found["measured"]["median_s"] / found["predicted_s"] - 1)
        low, high = found["published"]["low_s"], found["published"]["high_s"]
        self.assertEqual(found["published"]["place"],
                         "inside" if low <= found["measured"]["median_s"] <= high else "outside")
        self.assertAlmostEqual(found["memory"]["reserved"]["measured_bytes"] / GIB, 49.59, places=6)
        text = self.program("check", "torchtitan_h200.log", "torchtitan_h200.yaml", "--learned", "none").stdout
        self.assertRegex(text, r"step time +measured 1\.163 s .*predicted .*: [+-]")

    def test_a_systematic_difference_suggests_its_causes(self):
        text = self.program("check", "torchtitan_h200.log", "torchtitan_h200.yaml", "--learned", "none", "--set",
                            "cluster.gpu.sustained_rate=0.5").stdout  # far slower than it is
        self.assertRegex(text, "what it suggests, none of it proven\n(- .*\n)*- kernels .* would have to be .* times faster")

    def test_a_compressed_log_and_one_with_carriage_returns_are_the_same(self):
        plain = self.torchtitan()
        text = (self.directory / "torchtitan_h200.log").read_bytes()
        with gzip.open(self.directory / "packed.log.gz", "wb") as packed:
            packed.write(text.replace(b"\n", b"\r\n"))
        packed = self.check("packed.log.gz", "torchtitan_h200.yaml")
        self.assertEqual({**packed, "log": ""}, {**plain, "log": ""})
        (self.directory / "cut.gz").write_bytes((self.directory / "packed.log.gz").read_bytes()[:600])
        self.assertIn("compressed data are damaged",
                      self.program("check", "cut.gz", "torchtitan_h200.yaml", expect=2).stderr)

    def test_another_experiments_log_is_refused(self):
        for words, what in ((("torchtitan_h200.log", "torchtitan_h200.yaml", "--set", "strategy.global_batch=16"),
                             "8 sequences a step, and the experiment 16"),
                            (("torchtitan_h200.log", "torchtitan_h200.yaml", "--set", "cluster.nodes=2", "--set",
                              "strategy.global_batch=16"), "8 GPUs, and the experiment 16"),
                            (("torchtitan_h200.log", "torchtitan_h200.yaml", "--set", "model.sequence=4096"),
                             "8192 tokens a sequence, and the experiment 4096"),
                            (("nemo_h100.log",), "has no dump of Megatron-LM's arguments"),
                            (("README.md", "nemo_h100.yaml"), "no training step is found in it"),
                            (("megatron_v100.log",), "give --cluster NAME or --gpu NAME"),
                            (("torchtitan_h200.log", "torchtitan_h200.yaml", "--skip", "1000"), "leaves no step"),
                            (("torchtitan_h200.log", "torchtitan_h200.yaml", "--gpu", "h200_sxm"), "belongs to --like")):
            self.assertIn(what, self.program("check", *words, expect=2).stderr, words)

    def test_a_lower_bound_has_no_interval_and_is_not_learned(self):
        found = self.torchtitan("--set", "fidelity=analytic")
        self.assertNotIn("published", found)
        self.assertLessEqual(found["predicted_s"], self.torchtitan()["predicted_s"])
        self.assertIn("is a lower bound", self.program("check", "torchtitan_h200.log", "torchtitan_h200.yaml", "--learn",
                                                       "--learned", "x.csv", "--set", "fidelity=analytic", expect=2).stderr)
        self.assertFalse((self.directory / "x.csv").exists())

    def test_what_ran_is_simulated_although_it_was_predicted_not_to_fit(self):
        small = self.torchtitan("--set", "cluster.gpu.memory_gib=30")
        self.assertFalse(small["predicted_to_fit"])
        self.assertEqual(small["predicted_s"], self.torchtitan()["predicted_s"])

    def test_another_layout_is_recognised_by_its_memory(self):
        fitting = json.loads(self.program("run", "torchtitan_h200.yaml", "--memory", "--json").stdout)["stages"][0]
        log = (self.directory / "torchtitan_h200.log").read_text()
        as_predicted = log.replace("49.59GiB", f"{fitting['reserved_bytes'] / GIB:.2f}GiB")
        (self.directory / "other.log").write_text(as_predicted)
        found = self.check("other.log", "torchtitan_h200.yaml", "--set", "strategy.recompute=none")
        self.assertTrue(any("with recompute per_op it would be" in one for one in found["suggestions"]), found)

    def test_strict_ends_with_3_outside_of_the_interval(self):
        inside = self.torchtitan("--strict")["published"]["place"]
        self.assertEqual(inside, "inside")
        slow = (self.directory / "torchtitan_h200.log").read_text().replace("tps: 7,", "tps: 1,")
        (self.directory / "slow.log").write_text(slow.replace("tps: 6,856", "tps: 1,000"))
        found = self.check("slow.log", "torchtitan_h200.yaml", "--strict", expect=3)
        self.assertEqual(found["published"]["place"], "above")

    def test_what_was_learned_narrows_later_intervals_until_it_is_ignored(self):
        table = self.directory / "mine" / "measured.csv"
        own = ("--learned", str(table))
        spec = ("run", "torchtitan_h200.yaml", "--json")
        before = self.program(*spec, *own).stdout
        self.torchtitan("--learn", *own)
        self.assertEqual(stat.S_IMODE(table.stat().st_mode), 0o600)
        after = self.program(*spec, *own).stdout
        self.assertEqual(after, self.program(*spec, *own).stdout)  # the same table gives the same bytes
        learned, published = json.loads(after), json.loads(before)
        self.assertEqual((learned["own"]["experiments"], learned["own"]["rows"]), (1, 1))
        self.assertEqual({key: value for key, value in learned.items() if key != "own"}, published)
        width = learned["own"]["step_time_high_s"] - learned["own"]["step_time_low_s"]
        self.assertLess(width, published["step_time_high_s"] - published["step_time_low_s"])
        self.assertEqual(self.program(*spec, "--learned", "none").stdout, before)
        self.assertNotIn("own", json.loads(self.program("run", "nemo_h100.yaml", "--json", *own).stdout))  # another stack
        # The same log does not vouch for itself, and its row is replaced.
        again = self.torchtitan("--learn", *own)
        self.assertNotIn("own", again)
        self.assertEqual(len(table.read_text().splitlines()), 2)
        shutil.copy(self.directory / "torchtitan_h200.log", self.directory / "second.log")
        second = self.check("second.log", "torchtitan_h200.yaml", "--learn", *own)
        self.assertEqual(second["own"]["rows"], 1)
        self.assertEqual(len(table.read_text().splitlines()), 3)

    def test_a_table_of_the_users_is_what_validate_reads(self):
        table = self.directory / "measured.csv"
        found = self.torchtitan("--learn", "--learned", str(table))
        rows = json.loads(self.program("validate", table, "--rows", "--json", "-j", 1, "--in-process").stdout)
        text = json.dumps(rows)
        self.assertIn("torchtitan_h200-", text)
        self.assertIn(repr(found["measured"]["median_s"])[:10], text)

    def test_a_table_of_another_version_is_left_out_and_said(self):
        table = self.directory / "measured.csv"
        self.torchtitan("--learn", "--learned", str(table))
        mark = table.read_text().splitlines()[1].split(",")[9]
        table.write_text(table.read_text().replace(mark, "0" * 32))
        shutil.copy(self.directory / "torchtitan_h200.log", self.directory / "second.log")
        found = self.check("second.log", "torchtitan_h200.yaml", "--learned", str(table))
        self.assertNotIn("own", found)
        self.assertEqual(found["own_outdated"], 1)
        table.write_text("id,source\n")
        self.assertIn("measured.csv:1: has no column",
                      self.program("run", "torchtitan_h200.yaml", "--learned", str(table), expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
