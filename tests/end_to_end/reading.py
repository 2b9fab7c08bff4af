"""What docs/reading.md says of reading results elsewhere: every line of it runs, and says what the run holds."""

import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy
import pandas

from program import PATIENCE_S, PROGRAM, ROOT, SWEEPS, environment_in, run

PAGE = (ROOT / "docs" / "reading.md").read_text()


def frame_of(group):
    frame = pandas.DataFrame({name: column[:] for name, column in group.items()})
    for name in frame.select_dtypes(object):
        frame[name] = frame[name].str.decode("utf-8")
    return frame


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-reading-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        run("sweep", SWEEPS / "tiny.yaml", "-j", 1, "--store", "none", directory=cls.directory)
        (cls.directory / "bin").mkdir()
        (cls.directory / "bin" / "manyworlds").symlink_to(PROGRAM)

    def said_by(self, words, shell=False):
        environment = environment_in(self.directory)
        environment["PATH"] = f"{self.directory / 'bin'}:{environment['PATH']}"
        done = subprocess.run(words, shell=shell, cwd=self.directory, env=environment, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout

    def results(self):
        return h5py.File(self.directory / "runs" / "tiny" / "results.h5")

    def test_every_command_of_the_page_runs(self):
        commands = re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL), re.MULTILINE)
        self.assertGreater(len(commands), 4)
        for command in commands:
            with self.subTest(command):
                said = self.said_by(command, shell=True)
                self.assertEqual(said == "", " -o " in command)

    def test_every_example_of_the_page_runs_and_prints_what_the_run_holds(self):
        listing, best, arrays = [self.said_by([sys.executable, "-W", "error", "-c", block])
                                 for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)]
        with self.results() as file:
            frame = frame_of(file["experiments"])
            for name, column in file["experiments"].items():
                self.assertIn(f"{name} [{column.attrs['unit'].decode()}]: ", listing)
        self.assertIn("axes: ['strategy.tp', ", listing)
        fastest = frame["tokens_per_s_per_gpu"].idxmax()
        self.assertRegex(best.splitlines()[1], rf"^ *{frame['id'][fastest]} ")
        self.assertIn("strategy.tp", arrays)
        cost = re.search(r"at most (\d+\.\d)%", arrays)
        full, quarter = "rail_optimized(oversubscription=1)", "fat_tree(leaf_hosts=4,oversubscription=4)"
        by = frame.groupby(["strategy.tp", "strategy.pp", "topology"])["step_time_s"].min().unstack("topology")
        self.assertAlmostEqual(float(cost[1]), 100 * ((by[quarter] / by[full]).max() - 1), delta=0.051)

    def test_an_export_has_every_value_of_every_table(self):
        with self.results() as file:
            for table in ("experiments", "excluded", "subsimulations/kernels", "subsimulations/collectives",
                          "subsimulations/episodes"):
                with self.subTest(table):
                    text = self.said_by([PROGRAM, "export", "runs/tiny", "--csv", "--table", table])
                    expected = frame_of(file[table])
                    self.assertGreater(len(expected), 0)
                    texts = {name: str for name in expected.select_dtypes(object)}
                    got = pandas.read_csv(io.StringIO(text), dtype=texts, keep_default_na=False,
                                          na_values={name: [""] for name in expected if name not in texts},
                                          float_precision="round_trip")
                    self.assertEqual(list(got), list(expected))
                    for name in expected:
                        numpy.testing.assert_array_equal(got[name].to_numpy(), expected[name].to_numpy(), name)

    def test_every_dataset_says_what_it_is(self):
        with self.results() as file:
            def look(name, item):
                if isinstance(item, h5py.Dataset) and name != "spec":
                    self.assertGreater(len(item.attrs["description"].decode()), 3, name)
                    self.assertIn("unit", item.attrs, name)
            file.visititems(look)

    def test_a_run_that_was_killed_before_its_status_is_told_how_to_go_on(self):
        shutil.copytree(self.directory / "runs" / "tiny", self.directory / "runs" / "early")
        for name in ("status.json", "complete.json"):
            (self.directory / "runs" / "early" / name).unlink(missing_ok=True)
        said = run("status", "runs/early", directory=self.directory, expect=2).stderr
        self.assertIn("the run has no status.json yet", said)
        self.assertIn("`manyworlds resume runs/early` goes on with it", said)

    def test_bad_words_are_told(self):
        for words, wanted in ((["runs/tiny"], "--csv"),
                              (["runs/tiny", "--csv", "--table", "experiment"], "did you mean 'experiments'"),
                              (["runs/none", "--csv"], "no such run directory")):
            self.assertIn(wanted, run("export", *words, directory=self.directory, expect=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
