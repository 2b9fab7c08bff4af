"""Simulations that crash, allocate without end or never end: each fails alone, is named, and may be tried again."""

import json
import pathlib
import shutil
import tempfile
import unittest

import h5py

from program import BUILD, SWEEPS, answer_digest, provenance, run

MISBEHAVING = str(BUILD / "tests" / "misbehaving")
TINY = SWEEPS / "tiny.yaml"
MISDEEDS = {3: ("crash", "crash", "SIGSEGV"), 5: ("allocate", "environment", "--task-memory"),
            11: ("throw", "error", "it throws")}
HANG = {7: ("hang", "environment", "--task-time")}
LIMITS = ["--task-memory", "1GiB"]  # none of time: on a busy machine any task may take as long as it likes


class Failures(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-failures-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def misbehave(self, *words, misdeeds=MISDEEDS, **more):
        asked = ", ".join(f"{what} {experiment}" for experiment, (what, _, _) in misdeeds.items())
        return run(*words, directory=self.directory, program=MISBEHAVING, MISBEHAVE=asked, **more)

    def complete(self, name):
        return json.loads((self.directory / name / "complete.json").read_text())

    def rows(self, name):
        with h5py.File(self.directory / name / "results.h5") as file:
            columns = {column: file["experiments"][column][:] for column in file["experiments"]}
        return [{column: values[row].item() for column, values in columns.items()} for row in range(20)]

    def test_each_fails_alone_and_is_tried_again_only_on_request(self):
        run("sweep", TINY, "-o", "undisturbed", "-j", 1, "--store", "none", directory=self.directory)
        undisturbed = self.rows("undisturbed")
        for name, words in {"ranks": ["-j", 2], "inside": ["-j", 2, "--in-process"]}.items():
            done = self.misbehave("sweep", TINY, "-o", name, "--store", "store", *words, *LIMITS, expect=3)
            self.assertRegex(done.stderr, r"\b3 of \d+ tasks failed")
            self.assertIn(f"manyworlds resume {name} --store store --retry-failed", done.stderr)

            failures = {failure["experiments"][0]: failure for failure in self.complete(name)["failures"]}
            self.assertEqual(set(failures), set(MISDEEDS))
            for experiment, (_, kind, word) in MISDEEDS.items():
                failure = failures[experiment]
                self.assertEqual((failure["class"], failure["experiments"], failure["kind"]),
                                 (kind, [experiment], "steps"))
                self.assertIn(word, failure["reason"])
                self.assertEqual(failure["configuration"]["strategy.tp"], undisturbed[experiment]["strategy.tp"])
                self.assertEqual(failure["configuration"]["model.layers"], 4)
            for experiment, (row, expected) in enumerate(zip(self.rows(name), undisturbed)):
                if experiment in MISDEEDS:
                    self.assertEqual(row["status"], b"failed")
                    self.assertIn(MISDEEDS[experiment][2].encode(), row["reason"])
                else:
                    self.assertEqual(repr(row), repr(expected))  # repr: NaN is NaN
            status = json.loads(run("status", name, "--json", directory=self.directory).stdout)
            self.assertEqual((status["failed"], status["quarantined"]), (3, 1))
            self.assertIn("--retry-failed", run("status", name, directory=self.directory).stdout)

            # The same line and a plain resume find them failed and try nothing again.
            for words_again in (["sweep", TINY, "-o", name], ["resume", name]):
                run(*words_again, "-j", 1, "--store", "none", directory=self.directory, expect=3)
                self.assertEqual(provenance(self.directory / name / "results.h5")["tasks_computed"], 0)
            # A failure that goes on is a failure again; without misdeeds the rest of the answer comes.
            self.misbehave("resume", name, "-j", 1, "--retry-failed", "--store", "store", *LIMITS, expect=3,
                           misdeeds={3: MISDEEDS[3]})
            self.assertEqual([failure["experiments"] for failure in self.complete(name)["failures"]], [[3]])
            run("resume", name, "-j", 1, "--retry-failed", "--store", "store", directory=self.directory)
            self.assertEqual(provenance(self.directory / name / "results.h5")["tasks_computed"], 1)
            self.assertEqual(answer_digest(self.directory / name / "results.h5"),
                             answer_digest(self.directory / "undisturbed" / "results.h5"))
            shutil.rmtree(self.directory / "store")

    def test_a_task_that_never_ends_is_ended_by_its_limit_of_time(self):
        """A busy machine may make others run into the limit too: all that is sure is that this one does, and why."""
        run("sweep", TINY, "-o", "undisturbed", "-j", 1, "--store", "none", directory=self.directory)
        for name, words in {"ranks": ["-j", 2], "inside": ["-j", 2, "--in-process"]}.items():
            self.misbehave("sweep", TINY, "-o", name, "--store", "none", *words, "--task-time", "5s", expect=3,
                           misdeeds=HANG)
            failures = self.complete(name)["failures"]
            self.assertIn(7, [failure["experiments"][0] for failure in failures])
            for failure in failures:
                self.assertEqual(failure["class"], "environment", failure)
                self.assertIn("--task-time", failure["reason"])
            run("resume", name, "-j", 1, "--retry-failed", "--store", "none", directory=self.directory)
            self.assertEqual(answer_digest(self.directory / name / "results.h5"),
                             answer_digest(self.directory / "undisturbed" / "results.h5"))

    def test_what_failed_is_in_no_store(self):
        self.misbehave("sweep", TINY, "-o", "first", "-j", 1, "--store", "store", *LIMITS, expect=3)
        run("sweep", TINY, "-o", "second", "-j", 1, "--store", "store", directory=self.directory)
        self.assertEqual(provenance(self.directory / "second" / "results.h5")["tasks_computed"], len(MISDEEDS))

    def test_a_limit_of_memory_that_no_simulation_can_begin_under_is_bad_input(self):
        for words in (["-j", 1], ["-j", 2], ["-j", 2, "--in-process"]):
            done = run("sweep", TINY, "-o", "never", *words, "--task-memory", "30MiB", directory=self.directory, expect=2)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn("--task-memory", done.stderr)
            self.assertFalse((self.directory / "never").exists())

    def test_durations_and_sizes_that_mean_nothing_are_refused(self):
        for words, said in ((["--task-time", "soon"], "1h30m"), (["--task-time", "5"], "1h30m"),
                            (["--task-memory", "much"], "task-memory"), (["--stop-after", "1h5"], "stop-after")):
            done = run("sweep", TINY, *words, directory=self.directory, expect=2)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
