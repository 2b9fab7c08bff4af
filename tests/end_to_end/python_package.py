"""The Python package: answers of the program, no lock held while it simulates, Ctrl-C, errors with places, and the notebook."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from program import BUILD, PROGRAM, ROOT, SWEEPS, environment_in, run

sys.path.insert(0, str(BUILD / "python"))
os.environ["MANYWORLDS_PROGRAM"] = PROGRAM
os.environ["MPLBACKEND"] = "Agg"

import manyworlds  # noqa: E402

BASE = {"model": "gpt3-1.3b", "cluster": {"gpu": "h100_sxm", "nodes": 2, "gpus_per_node": 8, "nic_gbps": 400},
        "strategy": {"micro_batch": 1, "global_batch": 32, "tp": 2, "pp": 2}}
ONE = {"name": "one", "base": BASE}
LONG = {"base": {"model": "gpt3-6.7b", "cluster": {"gpu": "h100_sxm", "nodes": 8, "gpus_per_node": 8, "nic_gbps": 400},
                 "strategy": {"micro_batch": 1, "global_batch": 256, "tp": 4, "pp": 2}}}  # coupled: minutes
PAGE = ROOT / "docs/python.md"
SEPARATOR = "--------\n"
INTERRUPTED = f"""
import os, signal, sys, threading
sys.path.insert(0, {str(BUILD / "python")!r})
import manyworlds
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
manyworlds.CALL
"""


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="manyworlds-python-")
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name).resolve()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)

    def interrupted(self, call):
        """Of a Python that gets Ctrl-C a second after it began `call`."""
        done = subprocess.run([sys.executable, "-c", INTERRUPTED.replace("CALL", call)], cwd=self.directory, capture_output=True,
                              text=True, timeout=300, env=environment_in(self.directory))
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertEqual(done.returncode, -signal.SIGINT, done.stderr)


class Experiments(Folder):
    def test_a_dict_its_yaml_and_a_file_have_the_programs_answer(self):
        (self.directory / "one.yaml").write_text(json.dumps(ONE))
        said = json.loads(run("run", "one.yaml", "--json", directory=self.directory).stdout)
        text = "name: one\nbase:\n  model: gpt3-1.3b\n  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 8, nic_gbps: 400}\n" \
               "  strategy: {micro_batch: 1, global_batch: 32, tp: 2, pp: 2}\n"
        for spec in (ONE, text, "one.yaml", self.directory / "one.yaml"):
            self.assertEqual(manyworlds.run(spec).to_dict(), said)

    def test_a_result_has_its_columns_and_their_sums(self):
        result = manyworlds.run(ONE)
        self.assertTrue(result.ran)
        self.assertLess(result.interval[0], result.step_time_s)
        self.assertLess(result.step_time_s, result.interval[1])
        self.assertAlmostEqual(sum(result.breakdown.values()), result.step_time_s, delta=1e-9 * result.step_time_s)
        self.assertEqual(sum(result.memory.values()), result.memory_peak_bytes)
        self.assertRegex(repr(result), r"^<Result one: 0\.\d+ s a step \(80 %: .* GiB>$")
        self.assertIn("mfu", dir(result))
        with self.assertRaisesRegex(AttributeError, "a result has no 'mfuu'"):
            result.mfuu

    def test_settings_take_the_place_of_the_documents(self):
        four = manyworlds.run({"base": {**BASE, "strategy": {**BASE["strategy"], "tp": 4}}})
        for given in ({"strategy.tp": 4}, ["strategy.tp=4"]):
            self.assertEqual(manyworlds.run(ONE, set=given).step_time_ps, four.step_time_ps)
        self.assertEqual(manyworlds.run(SWEEPS / "tiny.yaml", experiment=3).status, "ran")

    def test_what_does_not_fit_is_a_result_that_says_so(self):
        result = manyworlds.run(ONE, set={"model": "gpt3-175b", "strategy.zero": 0})
        self.assertEqual((result.ran, result.status), (False, "out_of_memory"))
        self.assertIn("out_of_memory", repr(result))

    def test_mistakes_have_a_file_a_line_and_a_key(self):
        path = self.directory / "bad.yaml"
        path.write_text("base:\n  model: gpt3-1.3b\n  strategy: {tpp: 2}\n")
        with self.assertRaises(manyworlds.InputError) as caught:
            manyworlds.run(path)
        self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.key), (str(path), 3, "strategy.tpp"))
        self.assertIn("did you mean 'tp'", caught.exception.message)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, manyworlds.ManyworldsError)
        for spec, more, key in ((ONE, {"set": {"strategy.tp": "x"}}, "strategy.tp"), ("none.yaml", {}, None), ("base: {", {}, None)):
            with self.assertRaises(manyworlds.InputError) as caught:
                manyworlds.run(spec, **more)
            self.assertEqual(caught.exception.key, key)

    def test_names_are_those_of_the_catalog(self):
        self.assertEqual(manyworlds.names("models"), run("completion", "names", "models", directory=self.directory).stdout.split())
        self.assertRaises(manyworlds.InputError, manyworlds.names, "model")
        self.assertIn(f"manyworlds {manyworlds.__version__} (build {manyworlds.build[:12]})",
                      run("--version", directory=self.directory).stdout)

    def test_other_threads_run_while_it_simulates(self):
        """Without the interpreter's lock given up, the count would stand still from the first report to the last."""
        counted, over, seen = [0], threading.Event(), []

        def count():
            while not over.is_set():
                counted[0] += 1
                time.sleep(0.001)

        def look(*progress):
            seen.append((counted[0], *progress))
            if len(seen) > 10:
                raise InterruptedError

        thread = threading.Thread(target=count)
        thread.start()
        try:
            self.assertRaises(InterruptedError, manyworlds.run, LONG, coupled=True, progress=look)
        finally:
            over.set()
            thread.join()
        self.assertGreater(seen[-1][0], seen[0][0])
        self.assertEqual(seen[-1][1:3], (0, 1))  # simulations done, and all: a coupled step alone

    def test_ctrl_c_ends_a_simulation(self):
        self.interrupted(f"run({LONG!r}, coupled=True)")


class Sweeps(Folder):
    def sweep(self, *words, **more):
        return manyworlds.sweep(*words, ranks=1, store="none", **more)

    def test_a_sweep_is_the_programs_and_its_results_are_frames_arrays_and_pictures(self):
        seen = []
        done = self.sweep(SWEEPS / "tiny.yaml", "tiny", progress=seen.append)
        run("sweep", SWEEPS / "tiny.yaml", "-j", 1, "--store", "none", "-o", "other", directory=self.directory)
        self.assertEqual(run("diff", "tiny", "other", directory=self.directory).stdout, "same results\n")
        self.assertEqual((seen[-1].state, seen[-1].done, seen[-1].failed), ("complete", seen[-1].total, 0))
        frame = done.frame()
        self.assertEqual((len(done), len(frame), set(frame["status"])), (20, 20, {"ran"}))
        self.assertEqual(frame.attrs["units"]["step_time_s"], "s")
        self.assertEqual(done.attributes["objective"], "tokens_per_s_per_gpu")
        best = done.top(3)
        self.assertEqual(best["id"].tolist(), frame.nlargest(3, "tokens_per_s_per_gpu")["id"].tolist())
        self.assertEqual(done.top(1, "memory_peak_bytes")["memory_peak_bytes"].iloc[0], frame["memory_peak_bytes"].min())
        dataset = done.dataset()
        self.assertEqual(dataset["step_time_s"].dims[:3], ("strategy.tp", "strategy.pp", "topology"))
        self.assertEqual(dataset["step_time_s"].attrs["units"], "s")
        row = best.iloc[0]
        cell = dataset["step_time_s"].sel({axis: row[axis] for axis in dataset["step_time_s"].dims})
        self.assertEqual(float(cell), row["step_time_s"])
        self.assertIn("name: tiny", manyworlds.open("tiny/results.h5").attributes["spec"])
        self.assertGreater(len(done.table("subsimulations/kernels")), 0)
        self.assertEqual(repr(manyworlds.open("tiny")), "<Run tiny: 20 experiments, 20 ran>")

        bars = done.plot.breakdown(k=2)
        widths = sum(patch.get_width() for patch in bars.patches if patch.get_y() + patch.get_height() / 2 == 0)
        self.assertAlmostEqual(widths, best["step_time_s"].iloc[0], delta=1e-9)
        front = done.plot.throughput_against_memory().lines[0].get_ydata()
        self.assertEqual(front[-1], frame["tokens_per_s_per_gpu"].max())
        self.assertEqual(len(done.plot.axis("strategy.tp").patches), 3)

    def test_mistakes_of_a_sweep(self):
        with self.assertRaises(manyworlds.InputError) as caught:
            self.sweep({**ONE, "axes": {"strategy.tpp": [1, 2]}}, "bad")
        self.assertEqual((caught.exception.file, caught.exception.key), ("spec", "strategy.tpp"))
        self.assertRaises(manyworlds.InputError, manyworlds.open, "nothing")
        self.assertRaises(manyworlds.InputError, self.sweep, "none.yaml", "bad")
        self.assertEqual(list(self.directory.iterdir()), [])  # nothing is left of the documents

    def test_ctrl_c_stops_a_sweep_and_the_same_call_finishes_it(self):
        spec = {**ONE, "name": "stopped", "axes": {"strategy.tp": [1, 2, 4], "strategy.pp": [1, 2], "strategy.micro_batch": [1, 2]}}
        self.interrupted(f"sweep({spec!r}, 'stopped', ranks=1, store='none', progress=lambda now: __import__('time').sleep(60))")
        self.assertEqual(self.sweep(spec, "stopped").frame()["status"].tolist(), ["ran"] * 12)


class Documents(Folder):
    def test_the_notebook_runs_and_shows_what_it_says(self):
        """Without Jupyter's files of the user: nothing of this machine decides."""
        environment = environment_in(self.directory, PYTHONPATH=str(BUILD / "python"), MANYWORLDS_PROGRAM=PROGRAM, HOME=str(self.directory),
                                     JUPYTER_PATH="/usr/share/jupyter", IPYTHONDIR=str(self.directory / "ipython"))
        done = subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", self.directory,
                               str(ROOT / "docs/first_sweep.ipynb")], capture_output=True, text=True, env=environment, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = json.loads((self.directory / "first_sweep.ipynb").read_text())["cells"]
        shown = ["".join("".join(output.get("text", "") or output["data"].get("text/plain", "")) for output in cell["outputs"])
                 for cell in cells if cell["cell_type"] == "code"]
        self.assertRegex(shown[0], r"^<Result experiment: 0\.\d+ s a step")
        self.assertIn("12 experiments, 12 ran", shown[3])
        self.assertIn("spec 3 strategy.tpp - unknown key", shown[-1])
        pictures = [output for cell in cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
        self.assertEqual(len(pictures), 2)

    def test_the_notebook_is_kept_without_outputs(self):
        for cell in json.loads((ROOT / "docs/first_sweep.ipynb").read_text())["cells"]:
            self.assertEqual((cell.get("outputs", []), cell.get("execution_count")), ([], None))

    def test_what_the_page_prints_is_what_its_lines_print(self):
        """But for figures, which change with the constants: `python_package.py --write` puts today's into the page."""
        words = [" ".join(re.sub(r"\d[\d.,]*", "#", text).split()) for text in (page_outputs(self.directory), page_outputs())]
        self.assertEqual(*words)


def page_outputs(directory=None):
    """What the blocks of Python in docs/python.md print, in order, in one interpreter; without a folder, what it says of that."""
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    if directory is None:
        return SEPARATOR.join(block for kind, block in blocks if kind == "text")
    program = SEPARATOR.join(block for kind, block in blocks if kind == "python").replace(SEPARATOR, f"\nprint({SEPARATOR!r}, end='')\n")
    done = subprocess.run([sys.executable, "-c", program], cwd=directory, capture_output=True, text=True, timeout=300,
                          env=environment_in(directory, PYTHONPATH=str(BUILD / "python")))
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def write_page():
    with tempfile.TemporaryDirectory() as directory:
        outputs = iter(page_outputs(directory).split(SEPARATOR))
    PAGE.write_text(re.sub(r"^```text\n.*?^```", lambda _: f"```text\n{next(outputs)}```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE))


if __name__ == "__main__":
    write_page() if sys.argv[1:] == ["--write"] else unittest.main(verbosity=2)
