"""Shards of a sweep and what joins them: the bytes of one run, whatever order, interruption or helping hand."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import h5py

from program import BUILD, PATIENCE_S, SWEEPS, answer_digest, provenance, run

TINY = SWEEPS / "tiny.yaml"


class Shards(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-shards-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def run_here(self, *words, **more):
        return run(*words, directory=self.directory, **more)

    def shard(self, number, count, *words, **more):
        return self.run_here("sweep", TINY, "--shard", f"{number}/{count}", "-j", 1, "--store", "none", *words, **more)

    def merge(self, *words, **more):
        return self.run_here("merge", *words, **more)

    def whole(self, *words):
        self.run_here("sweep", TINY, "-o", "whole", "-j", 1, "--store", "none", *words)

    def assert_whole(self, run_directory):
        self.assertEqual(self.run_here("diff", "whole", run_directory).stdout, "same results\n")
        self.assertEqual(answer_digest(self.directory / "whole/results.h5"),
                         answer_digest(self.directory / run_directory / "results.h5"))

    def test_merged_shards_have_the_bytes_of_one_run(self):
        shards = [f"runs/tiny.shards/{number}-of-3" for number in (1, 2, 3)]
        said = [self.shard(number, 3) for number in (1, 2, 3)]
        rows = [json.loads(self.run_here("sweep", TINY, "--shard", f"{number}/3", "-j", 1, "--store", "none",
                                         "--json").stdout)["experiments"] for number in (1, 2, 3)]
        self.assertEqual(sum(rows), 20)
        self.assertTrue(all(0 < count < 20 for count in rows), rows)
        for one, count in zip(said, rows):
            self.assertIn(f"{count} experiments: {count} ran", one.stderr)
        merged = self.merge(*reversed(shards), "-o", "runs/tiny")
        self.assertIn("20 experiments: 20 ran, and 4 combinations left out", merged.stderr)
        self.assertIn("tokens/s/GPU", merged.stdout)
        self.whole()
        self.assert_whole("runs/tiny")
        self.assertEqual(provenance(self.directory / "runs/tiny/results.h5")["tasks_computed"], 0)
        # Once more changes nothing, a part is another answer than the whole, and the same line finds the run done.
        self.merge(*shards, shards[0], "-o", "runs/tiny")
        self.assert_whole("runs/tiny")
        self.run_here("diff", "whole", shards[0], expect=1)
        self.run_here("sweep", TINY, "-o", "runs/tiny", "-j", 1, "--store", "none")
        self.assertEqual(provenance(self.directory / "runs/tiny/results.h5")["tasks_computed"], 0)

    def test_what_is_missing_is_told_and_can_be_computed_there_or_here(self):
        self.shard(1, 3, "-o", "one")
        missing = self.merge("one", "-o", "all", expect=75).stderr
        self.assertRegex(missing, r"\d+ of 20 experiments are missing, in shards 2,3")
        self.assertIn("manyworlds sweep SPEC --shard 2/3", missing)
        self.assertIn("manyworlds resume all", missing)
        with h5py.File(self.directory / "all/results.h5") as file:  # with what is there by now
            statuses = list(file["experiments/status"][:])
        self.assertEqual(f"{statuses.count(b'pending')} of {len(statuses)}", re.match(r"\d+ of 20", missing).group())
        self.assertEqual(json.loads((self.directory / "all/status.json").read_text())["state"], "drained")

        # A shard that was stopped: the first half of its journal is there.
        self.shard(2, 3, "-o", "two")
        journal, = (self.directory / "two/journal").iterdir()
        os.truncate(journal, journal.stat().st_size // 2)
        missing = self.merge("one", "two", "-o", "all", expect=75).stderr
        self.assertIn("was never finished", missing)
        self.assertRegex(missing, r"shard 2 of 3: \d+ experiments; `manyworlds resume two` resumes it")

        self.run_here("resume", "two", "-j", 1, "--store", "none")
        missing = self.merge("two", "-o", "all", expect=75).stderr
        self.assertRegex(missing, r"in shard 3\n")
        self.run_here("resume", "all", "-j", 1, "--store", "none")
        self.whole()
        self.assert_whole("all")
        figures = provenance(self.directory / "all/results.h5")
        self.assertGreater(figures["tasks_from_journal"], 0)
        self.assertGreater(figures["tasks_computed"], 0)
        self.shard(3, 3, "-o", "three")
        self.merge("three", "two", "one", "-o", "again")
        self.assert_whole("again")

    def test_shards_without_sharing_and_of_different_numbers_make_the_same_whole(self):
        for number in (1, 2):
            self.shard(number, 2, "-o", f"half{number}", "--no-sharing")
        self.merge("half1", "half2", "-o", "alone")
        self.whole()
        self.assert_whole("alone")
        self.shard(1, 2, "-o", "half")
        for number in range(1, 31):  # more shards than experiments: some have nothing to do
            self.shard(number, 30)
        thirtieths = sorted((self.directory / "runs/tiny.shards").iterdir())
        self.assertEqual(len(thirtieths), 30)
        self.assertRegex(self.merge("half", *thirtieths[:3], "-o", "mixed", expect=75).stderr, r"experiments are missing\n")
        self.merge("half", *thirtieths, "-o", "mixed")
        self.assert_whole("mixed")

    def test_failures_are_joined_as_they_are_and_a_result_takes_their_place(self):
        misbehaving, deeds = str(BUILD / "tests/misbehaving"), {"MISBEHAVE": "crash 3, throw 11"}
        def misbehave(*words, **more):
            return self.run_here(*words, "--store", "none", "-j", 1, program=misbehaving, **deeds, **more)
        codes = []
        for number in (1, 2):
            rows = json.loads(self.run_here("sweep", TINY, "--shard", f"{number}/2", "--dry-run", "--json").stdout)
            self.assertEqual(rows["experiments"], 10)
            done = subprocess.run([misbehaving, "sweep", str(TINY), "--shard", f"{number}/2", "-j", "1", "--store", "none",
                                   "-o", f"half{number}"], cwd=self.directory, capture_output=True, timeout=PATIENCE_S,
                                  env={**os.environ, **deeds, "XDG_CACHE_HOME": f"{self.directory}/cache"})
            codes.append(done.returncode)
        self.assertIn(3, codes)
        self.assertLessEqual(set(codes), {0, 3})
        misbehave("sweep", TINY, "-o", "whole", expect=3)
        self.merge("half1", "half2", "-o", "all", expect=3)
        self.assert_whole("all")
        # Tried again where nothing goes wrong, merged again: results count, whatever failed before.
        for number, code in zip((1, 2), codes):
            if code == 3:
                self.run_here("resume", f"half{number}", "--retry-failed", "-j", 1, "--store", "none")
        self.merge("half1", "half2", "-o", "all")
        shutil.rmtree(self.directory / "whole")
        self.whole()
        self.assert_whole("all")

    def test_parts_of_other_sweeps_and_other_builds_are_refused(self):
        self.shard(1, 2, "-o", "one")
        self.shard(2, 2, "-o", "other", "--set", "strategy.global_batch=32")
        self.assertIn("one and other are not parts of one sweep", self.merge("one", "other", "-o", "all", expect=2).stderr)
        self.shard(2, 2, "-o", "alone", "--no-sharing")
        self.assertIn("one and alone are not parts", self.merge("one", "alone", "-o", "all", expect=2).stderr)
        self.assertIn("one is both read and written", self.merge("one", "-o", "one", expect=2).stderr)
        self.assertIn("nothing is not a run directory", self.merge("nothing", "-o", "all", expect=2).stderr)
        self.assertIn("runs are missing", self.merge("-o", "all", expect=2).stderr)
        self.assertIn("--output is required", self.merge("one", expect=2).stderr)
        self.assertFalse((self.directory / "all").exists())
        self.assertIn("another sweep", self.merge("one", "-o", "other", expect=2).stderr)
        (self.directory / "one/build.json").write_text('{"fingerprint":"of yesterday"}\n')
        self.assertIn("one was computed by another build (of yesterday", self.merge("one", "-o", "all", expect=2).stderr)

    def test_a_shard_that_does_not_exist_is_refused_before_any_work(self):
        for wrong in ("4/3", "0/3", "3", "a/b", "1/0"):
            self.assertIn("as in --shard 3/8", self.shard(*wrong.split("/"), expect=2).stderr if "/" in wrong else
                          self.run_here("sweep", TINY, "--shard", wrong, expect=2).stderr)
        self.assertEqual(os.listdir(self.directory), [])


if __name__ == "__main__":
    unittest.main()
