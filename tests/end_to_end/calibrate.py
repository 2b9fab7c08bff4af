"""`manyworlds calibrate`: files are known by their content, a catalog comes out that predicts them, and nothing is hidden."""

import csv
import gzip
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import PATIENCE_S, PROGRAM, ROOT, run

LOG = ROOT / "tests/experiments/nccl_tests/all_reduce_h100_8.log"
OWN = ROOT / "tests/experiments/own_h100"
SCRIPT = ROOT / "script/measure_kernels.py"
HEADER = ("id,source,model,layers,hidden,heads,vocab,seq_len,gpu,num_gpus,tp,pp,micro_batch,global_batch,recompute,"
          "zero_stage,dtype,measured_step_s\n")


def script():
    spec = importlib.util.spec_from_file_location("measure_kernels", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Calibrate(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-calibrate-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def calibrate(self, *files, expect=0, output="mine.yaml", name="mine", gpu="h100"):
        return run("calibrate", "--gpu", gpu, "--name", name, "-o", output, *map(str, files), directory=self.directory,
                   expect=expect)

    def refused(self, *words):
        done = self.calibrate(*words, expect=2)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertFalse((self.directory / "mine.yaml").exists())
        return done.stderr

    def predicted(self, file, *words):
        told = json.loads(run("validate", file, "--json", "--rows", *words, directory=self.directory).stdout)
        return [row["predicted"] for kind in told["kinds"] for row in kind["rows"]]

    def kernel_table(self, change=lambda row, us: us):
        """The script's shapes with the times that the program predicts on an H100, changed."""
        measured, text = script(), io.StringIO()
        rows = measured.kernels()
        measured.write([{**row, "time_us": 1} for row in rows], "NVIDIA H100 80GB HBM3", "test", text)
        (self.directory / "shapes.csv").write_text(text.getvalue())
        times = self.predicted("shapes.csv")
        self.assertEqual(len(times), len(rows))
        text = io.StringIO()
        measured.write([{**row, "time_us": change(row, us)} for row, us in zip(rows, times)], "NVIDIA H100 80GB HBM3",
                       "test", text)
        (self.directory / "kernels.csv").write_text(text.getvalue())
        return "kernels.csv"

    def test_a_published_log_is_read_twice_the_same_and_nothing_gets_worse(self):
        first = self.calibrate(LOG).stdout
        text = (self.directory / "mine.yaml").read_bytes()
        again = self.calibrate(LOG).stdout
        self.assertEqual((first, text), (again, (self.directory / "mine.yaml").read_bytes()))
        whole = re.search(r"^  all +32 +([\d.]+) +([\d.]+) +([\d.]+)$", first, re.MULTILINE)
        self.assertIsNotNone(whole, first)
        self.assertLessEqual(float(whole[2]), float(whole[1]))
        self.assertIn(f"| 32 | {whole[1]} | {whole[2]} | {whole[3]} |", (ROOT / "docs/model/calibrate.md").read_text())
        self.assertIn("left out: each row by itself", first)
        self.assertRegex(first, r"do not determine them:\n    .*library_nic_share")
        listed = json.loads(run("list", "gpus", "--json", "--catalog", "mine.yaml", directory=self.directory).stdout)
        self.assertTrue(any(one["name"] == "mine" for one in listed["gpus"]))

    def test_kernels_of_the_script_that_the_catalog_predicts_change_nothing(self):
        told = self.calibrate(self.kernel_table()).stdout
        self.assertNotIn("->", told)
        self.assertIn("stay as they were", told)

    def test_a_slower_memory_is_found_in_the_scripts_table_and_predicts_it(self):
        table = self.kernel_table(lambda row, us: us * 1.25 if row["kind"] == "memory_bound" else us)
        told = self.calibrate(table).stdout
        found = re.search(r"^  memory_efficiency +0\.9 -> +([\d.]+)", told, re.MULTILINE)
        self.assertIsNotNone(found, told)
        self.assertAlmostEqual(float(found[1]), 0.9 / 1.25, delta=0.01)
        self.assertIn("kernels.csv", (self.directory / "mine.yaml").read_text())
        times = {"h100_sxm": None, "mine": None}
        for gpu in times:
            text = (self.directory / table).read_text().replace("NVIDIA H100 80GB HBM3", gpu)
            (self.directory / f"{gpu}.csv").write_text(text)
            measured = [float(row["time_us"]) for row in csv.DictReader(io.StringIO(text)) if row["name"] == "copy"]
            predicted = self.predicted(f"{gpu}.csv", "--catalog", "mine.yaml")[-len(measured):]
            times[gpu] = sum(abs(a / b - 1) for a, b in zip(predicted, measured)) / len(measured)
        self.assertGreater(times["h100_sxm"], 0.15)
        self.assertLess(times["mine"], 0.03)

    def test_steps_come_after_parts_and_are_simulated_with_what_they_told(self):
        steps = HEADER + "".join(
            f"s{hidden}_{batch},mine,GPT,8,{hidden},16,51200,2048,H100,8,1,1,{batch},{8 * batch},none,0,bf16,1\n"
            for hidden in (1024, 2048, 4096, 8192) for batch in (1, 2))
        (self.directory / "one.csv").write_text(steps)
        times = self.predicted("one.csv", "--in-process")
        rows = [line for line in steps.splitlines()[1:]]
        slower = HEADER + "".join(f"{row[:-1]}{1.1 * time}\n" for row, time in zip(rows, times))
        (self.directory / "steps.csv").write_text(slower)
        told = self.calibrate("steps.csv").stdout
        whole = re.search(r"^  (?:all|mine) +8 +([\d.]+) +([\d.]+) +([\d.]+)$", told, re.MULTILINE)
        self.assertIsNotNone(whole, told)
        before, after, left_out = map(float, whole.groups())
        self.assertAlmostEqual(before, 100 * (1 - 1 / 1.1), delta=0.2)
        self.assertLess(after, before / 2)
        self.assertLess(left_out, before)
        catalog = (self.directory / "mine.yaml").read_text()
        self.assertIn("steps.csv", catalog)
        for share in re.findall(r"(?:efficiency|sustained_rate): \{value: ([\d.]+)", catalog):
            self.assertTrue(0 < float(share) <= 1, share)

    def test_a_trace_is_known_by_its_content_and_says_what_it_does_not_tell(self):
        events = []
        for i, (m, n) in enumerate([(4096, 4096), (8192, 4096), (4096, 8192), (8192, 8192), (2048, 8192), (8192, 1024)]):
            us = 2 * m * n * 4096 / 500e6
            events += [{"cat": "cpu_op", "name": "aten::mm", "args": {
                            "External id": i, "Input Dims": [[m, 4096], [4096, n]], "Input type": ["c10::BFloat16"] * 2}},
                       {"cat": "kernel", "name": "gemm", "dur": us, "args": {"External id": i}}]
        events.append({"cat": "kernel", "name": "other", "dur": 3, "args": {}})
        with gzip.open(self.directory / "profile.txt", "wt") as file:
            json.dump({"deviceProperties": [{"name": "NVIDIA A100"}], "traceEvents": events}, file)
        told = self.calibrate("profile.txt").stdout
        self.assertIn("note: profile.txt names the device NVIDIA A100, which is a100_80", told)
        self.assertRegex(told, r"GEMM bf16 in a step +6 ")
        self.assertIn("sustained_rate", told)
        self.assertIn("1 left out: no operator of the trace launched it", told)

    def test_a_trace_of_training_on_an_h100_has_the_kernels_of_its_model(self):
        told = self.calibrate(OWN / "torchtitan-eager_llama_1b_4096_2_none.json.gz").stdout
        gemms = 3 * (16 * 7 + 1)  # 16 layers of seven matrices and the vocabulary: forward, and two of gradients
        self.assertRegex(told, rf"GEMM bf16 in a step +{gemms} ")
        for direction in ("forward", "backward"):
            self.assertRegex(told, rf"cudnn_{direction} bf16 in a step +16 ")

    def test_steps_measured_after_the_constants_were_fixed_are_predicted(self):
        for file in ("steps_first.csv", "steps.csv"):
            told = json.loads(run("validate", OWN / file, "--json", "--in-process", directory=self.directory).stdout)
            family = next(one for kind in told["kinds"] for one in kind["families"] if one["family"].startswith("measured"))
            self.assertEqual((family["rows"], family["run"]), (12, 12))
            self.assertLessEqual(family["errors"]["mean_percent"], 10)  # the bar of torchtitan's own steps on H100

    def test_what_is_no_measurement_is_refused_by_name_with_what_would_be_right(self):
        for name, text in [("notes.txt", "a, b\n1\n"), ("empty.log", ""), ("memory.csv", "test_case,device\nx,y\n"),
                           ("latin.csv", "a,b\n\udcff,1\n")]:
            (self.directory / name).write_bytes(text.encode("utf-8", "surrogateescape"))
            told = self.refused(name)
            self.assertIn(name, told)
        self.assertIn("must be what nccl-tests printed", self.refused("notes.txt"))
        (self.directory / "a.json").write_text("{}")
        self.assertIn("a.json: is no trace of the PyTorch profiler", self.refused("a.json"))
        self.assertIn("--gpu", run("calibrate", "--gpu", "h900", "--name", "mine", "-o", "m.yaml", str(LOG),
                                   directory=self.directory, expect=2).stderr)
        for name in ("h100_sxm", "h100", "A B", ""):
            self.assertIn("name", self.calibrate(LOG, name=name, expect=2).stderr)

    def test_files_of_which_no_row_can_be_predicted_write_nothing(self):
        (self.directory / "k.csv").write_text("level,name,kind,dtype,m,n,k,time_us\nkernel,x,gemm,fp32,1,2,3,4\n")
        done = self.calibrate("k.csv", expect=2)
        self.assertIn("no row of the files can be predicted", done.stderr)
        self.assertIn("1 left out: GEMMs of fp32 are not modelled", done.stdout)
        self.assertFalse((self.directory / "mine.yaml").exists())


class Script(unittest.TestCase):
    def run_script(self, *words, path=None):
        return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**os.environ, **({"PYTHONPATH": str(path)} if path else {})})

    def fake_torch(self, body):
        directory = tempfile.mkdtemp(prefix="manyworlds-torch-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        (pathlib.Path(directory) / "torch.py").write_text(body)
        return directory

    def test_it_lists_its_shapes_without_a_gpu_in_the_columns_of_the_table(self):
        done = self.run_script("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual({row["kind"] for row in rows},
                         {"gemm", "memory_bound", "flash2_forward", "flash2_backward", "cudnn_forward", "cudnn_backward"})
        for row in rows:
            if row["kind"] == "gemm":
                m, n, k = (int(row[size]) for size in "mnk")
                self.assertEqual(int(row["flops"]), 2 * m * n * k)
                self.assertEqual(int(row["bytes"]), (m * k + k * n) * (1 if row["dtype"] == "fp8" else 2) + 2 * m * n)

    def test_without_pytorch_or_without_a_gpu_it_says_so_and_measures_nothing(self):
        for body, expected in [("raise ImportError('none')", "PyTorch is not installed here"),
                               ("class cuda:\n    is_available = staticmethod(lambda: False)", "PyTorch finds no GPU here")]:
            done = self.run_script(path=self.fake_torch(body))
            self.assertEqual(done.returncode, 1)
            self.assertIn(expected, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_the_script_of_steps_lists_its_layouts_without_a_gpu_and_says_what_it_needs(self):
        steps = ROOT / "script/measure_steps.py"
        def launched(*words, path=""):
            return subprocess.run([sys.executable, str(steps), *words], capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**os.environ, "PYTHONPATH": str(path)})
        listed = launched("--list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        measured = list(csv.DictReader((OWN / "steps.csv").open()))
        for row, one in zip(csv.DictReader(io.StringIO(listed.stdout)), measured, strict=True):
            unset = ("source", "year", "gpu", "family", "measured_step_s", "measured_memory_gib")
            self.assertEqual({key: row[key] for key in row if key not in unset}, {key: one[key] for key in one if key not in unset})
        no_gpu = self.fake_torch("class cuda:\n    is_available = staticmethod(lambda: False)")
        done = launched(path=no_gpu)
        self.assertEqual(done.returncode, 1)
        self.assertIn("PyTorch finds no GPU here", done.stderr)
        steps = ROOT / "script/measure_power.py"
        self.assertIn("PyTorch finds no GPU here", launched(path=no_gpu).stderr)

    def test_a_kernel_that_the_gpu_lacks_is_named_and_the_others_are_measured(self):
        measured = script()

        class Gpu:
            def measure(self, row):
                if row["kind"] == "cudnn_forward":
                    raise RuntimeError("no kernel for this\nbacktrace")
                return 12.5

        told, sys.stderr = sys.stderr, io.StringIO()
        try:
            rows, text = list(measured.measured(Gpu(), measured.kernels())), sys.stderr.getvalue()
        finally:
            sys.stderr = told
        self.assertEqual(len(rows), len(measured.kernels()) - len(measured.ATTENTION))
        self.assertTrue(all(row["time_us"] == "12.5000" for row in rows))
        self.assertIn("cudnn_forward bf16 1024x1024x128 left out: no kernel for this\n", text)

    def test_it_takes_the_median_of_repeats_of_enough_launches(self):
        measured, launched = script(), []

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.count = len(launched)

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return 0.01 * (end.count - self.count)  # 10 us a launch, in ms

        gpu = object.__new__(measured.Gpu)
        gpu.torch, gpu.repeats = type("torch", (), {"cuda": type("cuda", (), {"Event": Event})}), 3
        self.assertAlmostEqual(gpu.time_us(launched.append, 4), 10)
        self.assertEqual(len(launched), 20 + 3 * 200)
        self.assertEqual(set(launched), {0, 1, 2, 3})


if __name__ == "__main__":
    unittest.main()
