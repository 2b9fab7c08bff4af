"""`manyworlds search`: the sweep it prints is the one it runs, nothing better is left out, and packets follow."""

import html
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import h5py

from program import PATIENCE_S, PROGRAM, ROOT, environment_in, run

WORDS = ("--budget", 0, "--model", "gpt3-1.3b", "--cluster", "dgx_h100_superpod", "--nodes", 2, "--global-batch", 32)
RUN = ("-j", 1, "--in-process", "--store", "none")
FIGURES = ("step_time_ps", "tokens_per_s_per_gpu", "mfu", "memory_peak_bytes", "fidelity")


class Search(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-search-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        words = (*WORDS, *RUN, "--sample", 60, "-k", 5, "-o", "found")
        cls.found = json.loads(run("search", *words, "--json", directory=cls.directory).stdout)
        cls.again = run("search", *words, directory=cls.directory).stdout

    def sweep(self, *words):
        yaml = run("search", *WORDS, *words, "--sweep-yaml", directory=self.directory).stdout
        (self.directory / "printed.yaml").write_text(yaml)
        return yaml

    def rows_of(self, directory):
        return json.loads(run("top", directory, "-k", 1000, "--json", directory=self.directory).stdout)["rows"]

    def test_the_screening_is_the_sweep_it_prints(self):
        self.assertIn("sample: {experiments: 60, seed: 1}", self.sweep("--sample", 60))
        run("sweep", "printed.yaml", "-o", "printed", *RUN, directory=self.directory)
        top = self.rows_of("printed")
        self.assertGreater(len(top), 20)
        self.assertEqual(self.found["screening"]["layouts"], len(top))
        for mine, theirs in zip(self.found["screening"]["top"]["rows"], top[:5], strict=True):
            self.assertEqual(mine["layout"], theirs["layout"])
            for name in FIGURES:
                self.assertEqual(mine["columns"][name], theirs["columns"][name])
            self.assertEqual(mine["columns"]["fidelity"], "analytic")

    def test_it_simulates_until_nothing_else_can_be_faster(self):
        screened = self.rows_of(self.found["screening"]["run"])
        rows = self.rows_of("found")
        self.assertTrue(self.found["settled"])
        self.assertEqual((self.found["simulated"], self.found["open"]["layouts"]), (len(rows), 0))
        self.assertGreaterEqual(len(rows), 8)
        bounds = {row["layout"]: row["columns"]["step_time_ps"] for row in screened}
        for row in rows:
            self.assertEqual(row["columns"]["fidelity"], "packet")
            self.assertGreaterEqual(row["columns"]["step_time_ps"], bounds.pop(row["layout"]))
        # What was not simulated is no faster than the winner, however lucky its packets.
        self.assertGreaterEqual(min(bounds.values()), rows[0]["columns"]["step_time_ps"])

    def test_no_layout_that_its_bound_excludes_is_faster(self):
        words = (*WORDS, *RUN, "--sample", 500, "-o", "bounded")
        found = json.loads(run("search", *words, "--json", directory=self.directory).stdout)
        self.assertTrue(found["settled"])
        screening = found["screening"]
        self.assertLess(screening["layouts"], screening["fitting"])
        run("search", *WORDS, *RUN, "--sample", 500, "--packet", 0, "-o", "every", directory=self.directory)
        every = self.rows_of("every")
        self.assertEqual(len(every), screening["fitting"])
        packets = {row["layout"]: row["columns"]["step_time_ps"] for row in self.rows_of("bounded")}
        analytic = {row["layout"]: row["columns"]["step_time_ps"] for row in self.rows_of(screening["run"])}
        for row in every:
            time = row["columns"]["step_time_ps"]
            self.assertEqual(analytic.get(row["layout"], time), time)
            if row["layout"] not in packets:
                self.assertGreaterEqual(time, min(packets.values()))

    def test_the_answer_top_and_report_are_the_packets(self):
        rows = self.rows_of("found")
        for mine, theirs in zip(self.found["top"]["rows"], rows[:5], strict=True):
            self.assertEqual(mine["columns"], theirs["columns"])
        run("report", "found", "-o", "found.html", directory=self.directory)
        self.assertIn(rows[0]["layout"].split(" ")[0], (self.directory / "found.html").read_text())
        self.assertIn("proven optimal", self.again)  # from what the first one left
        self.assertIn("Spearman", self.again)
        # The front: what no other beats in both, looked for in the plainest way.
        points = {row["columns"]["id"]: (row["columns"]["tokens_per_s_per_gpu"], row["columns"]["memory_peak_bytes"])
                  for row in rows}
        beaten = lambda a: any(b[0] >= a[0] and b[1] <= a[1] and b != a for b in points.values())
        front = {points[row["columns"]["id"]] for row in self.found["pareto"]}
        self.assertEqual(front, {point for point in points.values() if not beaten(point)})

    def test_a_limit_is_kept_and_what_is_open_is_told(self):
        words = (*WORDS, *RUN, "--sample", 60, "--packet", 1, "-o", "one")
        found = json.loads(run("search", *words, "--json", directory=self.directory).stdout)
        self.assertEqual(found["simulated"], 1)
        self.assertEqual(found["settled"], found["open"]["layouts"] == 0)
        screened = json.loads(
            run("search", *WORDS, *RUN, "--sample", 60, "--packet", 0, "-o", "none", "--json",
                directory=self.directory).stdout)
        self.assertEqual(screened["fidelity"], "analytic")
        self.assertFalse((self.directory / "none.search").exists())

    def test_every_layout_that_can_be_is_in_the_space(self):
        words = ("--sample", "all", "--recompute", "none", "--micro-batch", 1, "--all-schedules")
        yaml = self.sweep(*words)
        self.assertIn("strategy.recompute: [none]", yaml)
        run("sweep", "printed.yaml", "-o", "all", *RUN, directory=self.directory)
        csv = run("export", "all", "--csv", directory=self.directory).stdout.splitlines()
        names = csv[0].split(",")
        has = {tuple(row.split(",")[names.index(key)] for key in
                     ("strategy.tp", "strategy.pp", "strategy.zero", "strategy.schedule", "strategy.virtual_stages"))
               for row in csv[1:]}
        has = {one for one in has if one[3] in ("1f1b", "zb_h1", "interleaved", "zb_v", "dualpipev")}
        gpus, batch, layers, heads = 16, 32, 24, 16
        expected = set()
        for tp in (1, 2, 4, 8):
            for pp in (1, 2, 4, 8, 16):
                for zero in (0, 1, 3):
                    for schedule, chunks in (("1f1b", 1), ("zb_h1", 1), ("interleaved", 2), ("interleaved", 3),
                                             ("interleaved", 4), ("interleaved", 6), ("zb_v", 2), ("dualpipev", 2)):
                        dp = gpus // (tp * pp)
                        if dp * tp * pp != gpus or heads % tp or layers % (pp * chunks) or batch % dp:
                            continue
                        if (zero and dp == 1) or (pp == 1 and schedule != "1f1b"):
                            continue
                        if schedule == "interleaved" and batch // dp % pp:
                            continue
                        if schedule == "dualpipev" and batch // dp < 2 * pp:
                            continue
                        expected.add(tuple(map(str, (tp, pp, zero, schedule, chunks))))
        self.assertEqual(has, expected)

    def test_words_say_what_keys_do(self):
        yaml = self.sweep("--precision", "fp8", "--tp", "2,4", "--max-memory", "40GiB", "--zero", 1, "--packet", 0)
        self.assertIn("strategy.stack.precision: fp8", yaml)
        self.assertIn("strategy.tp: [2, 4]", yaml)
        self.assertIn("strategy.zero: [1]", yaml)
        run("search", *WORDS, *RUN, "--precision", "fp8", "--tp", 2, "--packet", 1, "--sample", 20, "-o", "fp8",
            directory=self.directory)
        # Small micro-batches wait for the host, which launches more kernels for fp8.
        words = ("--precision", "bf16,fp8", "--tp", 2, "--zero", 1, "--micro-batch", 8, "--recompute", "none")
        found = run("search", *WORDS[:-1], 128, *RUN, *words, "-o", "both", "--json", directory=self.directory).stdout
        self.assertEqual(json.loads(found)["top"]["rows"][0]["columns"]["precision"], "fp8")

    def test_models_with_experts_have_their_axes_too(self):
        yaml = run("search", "--model", "mixtral-8x7b", "--gpu", "h100_sxm", "--gpus", 256, "--sequence", 16384,
                   "--sample", 10, "--sweep-yaml", directory=self.directory).stdout
        self.assertIn("strategy.ep: [1, 2, 4, 8]", yaml)
        self.assertIn("strategy.cp: [1, 2, 4]", yaml)
        self.assertIn("global_batch: 256,", yaml)
        self.assertIn("dispatcher: [all_to_all, hybrid_ep]", yaml)

    def test_the_readme_has_the_table_that_the_demo_prints(self):
        subprocess.run(["/usr/bin/python3", ROOT / "script/update_demo.py", "--program", PROGRAM, "--run",
                        self.directory / "demo", "--check"], check=True)

    def test_a_search_that_ends_early_prints_what_it_has_and_goes_on(self):
        words = (*WORDS[2:], *RUN, "--sample", 60, "--json", "-o", "short")
        found = json.loads(run("search", *words, "--budget", "6s", directory=self.directory).stdout)
        self.assertIn(found["ended"], ("limit", "budget"))  # as fast as the machine is
        self.assertGreater(len(found["top"]["rows"]), 0)
        if found["fidelity"] == "packet" and found["ended"] == "budget":
            self.assertEqual(found["settled"], found["open"]["layouts"] == 0)
        listed = json.loads(run("top", "short", "--json", directory=self.directory).stdout)["rows"]
        self.assertEqual(listed[0]["columns"], found["top"]["rows"][0]["columns"])  # the announced run is the answer
        whole = json.loads(run("search", *words, "--budget", 0, directory=self.directory).stdout)
        self.assertFalse((self.directory / "short").is_symlink())
        self.assertEqual(whole["ended"], "limit")
        self.assertEqual([row["columns"] for row in whole["top"]["rows"][:5]],
                         [row["columns"] for row in self.found["top"]["rows"]])

    def test_a_search_that_is_interrupted_prints_what_it_has_and_goes_on(self):
        words = ("search", *WORDS, *RUN, "--sample", 60, "-k", 5, "-o", "interrupted")
        told = subprocess.Popen([PROGRAM, *map(str, words)], cwd=self.directory, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, env=environment_in(self.directory))
        rounds = self.directory / "interrupted.search"
        while told.poll() is None and not list(rounds.glob("[0-9]*/journal*")):
            time.sleep(0.02)
        told.send_signal(signal.SIGINT)
        text = told.communicate(timeout=PATIENCE_S)[0]
        self.assertIn(told.returncode, (0, 75))  # the signal may come when all is done
        self.assertRegex(text, r"(?m)^ *1 +\d+ ")
        if told.returncode == 75:
            self.assertIn("the same line continues", text)
        simulated = [status for results in rounds.glob("[0-9]*/results.h5")
                     for status in h5py.File(results)["experiments/status"][()] if status == b"ran"]
        # What was simulated heads the list; bounds do only where nothing was, and are called so.
        self.assertEqual("lower bounds only: no layout was simulated" in text, not simulated, text)
        again = run(*words, "--json", directory=self.directory).stdout
        self.assertEqual([row["columns"] for row in json.loads(again)["top"]["rows"]],
                         [row["columns"] for row in self.found["top"]["rows"]])

    def test_each_space_has_a_run_directory_of_its_own(self):
        words = ("--model", "gpt3-1.3b", "--gpu", "NVIDIA H100 80GB HBM3", "--gpus", 8, "--tp", 1, "--recompute", "none",
                 "--pp", 1, "--zero", 1, "--packet", 0, *RUN)
        for batch in (8, 16, 8):
            run("search", *words, "--micro-batch", 1, "--global-batch", batch, directory=self.directory)
        self.assertEqual(len(list((self.directory / "runs").glob("gpt3-1.3b-on-8-h100_sxm-*/results.h5"))), 2)

    def test_a_token_budget_becomes_days_and_money(self):
        words = ("--model", "gpt3-1.3b", "--gpu", "h100", "--gpus", 8, "--tp", 1, "--recompute", "none", "--pp", 1,
                 "--zero", 1, "--micro-batch", 1, "--packet", 0, *RUN, "--tokens", "2T",
                 "--set", "cluster.usd_per_gpu_hour=3", "-o", "priced", "--html")
        text = run("search", *words, directory=self.directory).stdout
        best = self.rows_of("priced")[0]["columns"]
        seconds = 2e12 / (8 * best["tokens_per_s_per_gpu"])
        self.assertIn(f"#1 trains the tokens in {seconds / 86400:.1f} days, for", text)
        self.assertAlmostEqual(best["train_usd"], seconds / 3600 * 8 * 3, delta=1e-6 * best["train_usd"])
        page = html.unescape((self.directory / "priced/report.html").read_text())
        self.assertIn("<html", page[:200])
        emitted = run("top", "priced", "--emit", "megatron", directory=self.directory).stdout
        self.assertIn(emitted[emitted.index("export CUDA_DEVICE_MAX_CONNECTIONS"):], page)
        self.assertIn("manyworlds top priced --emit megatron (with", page)

    def test_an_order_without_hardware_reads_none_and_says_what_it_assumes(self):
        words = ("search", "--model", "gpt3-1.3b", "--gpus", 16, "--symbolic", "--global-batch", 32)
        told = run(*words, "-k", 3, directory=self.directory)
        self.assertIn("No hardware was read", told.stdout)
        self.assertIn("between nodes 15704,", told.stdout)
        self.assertEqual([line.split()[0] for line in told.stdout.splitlines()[1:5]], ["#", "1", "2", "3"])
        order = json.loads(run(*words, "-k", 100000, "--json", directory=self.directory).stdout)
        weights = [one["weight_flops"] for one in order["order"]]
        self.assertEqual(len(weights), order["layouts"])
        self.assertEqual(weights, sorted(weights))
        # Where bytes weigh nothing, layouts of one GPU's FLOPs and no bubble are as good as each other.
        free = json.loads(run(*words, "--json", "-k", 100000, "--flops-per-byte", 0, "--flops-per-memory-byte", 0,
                              "--flops-per-us", 0, directory=self.directory).stdout)["order"]
        best = [one for one in free if one["weight_flops"] < 1.000001 * free[0]["weight_flops"]]
        self.assertGreater(len(best), 10)
        for one in best:
            self.assertEqual((one["bubble_share"], one["layout"]["strategy.recompute"]), (0, "none"))
        small = json.loads(run(*words, "--json", "--max-memory", "10GiB", directory=self.directory).stdout)
        self.assertEqual(small["layouts"] + small["too_large"], order["layouts"])
        self.assertGreater(small["too_large"], 0)
        for more, message in ((("--gpu", "h100_sxm"), "--gpu: has no meaning beside --symbolic"),
                              (("--set", "cluster.nic_gbps=400"), "has no meaning beside --symbolic"),
                              (("--gpus-per-node", 3), "--gpus-per-node: 16 GPUs are no whole nodes of 3")):
            self.assertIn(message, run(*words, *more, directory=self.directory, expect=2).stderr)
        for more, message in ((("--symbolic",), "--symbolic: needs --gpus N"),
                              (("--gpu", "h100_sxm", "--node-factor", 3), "--node-factor: means nothing without --symbolic")):
            self.assertIn(message, run("search", "--model", "gpt3-1.3b", *more, directory=self.directory, expect=2).stderr)

    def test_the_page_has_the_flags_that_were_asked_for_or_those_of_the_jobs_framework(self):
        job = ROOT / "tests/experiments/jobs/train_llama3_8b_h100_fp8.sh"
        words = ("search", "--like", job, "--gpu", "h100", "--tp", 1, "--pp", 1, "--recompute", "none", "--packet", 0, *RUN,
                 "--html", "-o", "liked")
        for more, target, begin in (((), "megatron", "#!/bin/bash"), (("--emit", "nemo"), "nemo", "trainer:")):
            with self.subTest(target=target):
                printed = run(*words, *more, directory=self.directory).stdout
                page = html.unescape((self.directory / "liked/report.html").read_text())
                self.assertIn(f"manyworlds top liked --emit {target} --like {job} (with", page)
                self.assertIn(begin, page)
                if more:
                    self.assertIn(printed[printed.index("\n\n# train") + 2:], page)

    def test_a_model_that_fits_nowhere_is_told_what_it_lacks(self):
        said = run("search", "--model", "llama3-70b", "--gpu", "h100", "--gpus", 2, "--sequence", 4096, *RUN, "--sample",
                   20, "-o", "large", directory=self.directory, expect=3).stdout
        self.assertIn("none of 20 layouts fits", said)
        self.assertIn("cluster.nodes=", said)

    def test_a_search_whose_time_is_over_prints_what_it_has_and_what_is_open(self):
        for budget in ("1s", "3s"):  # within listing, bounds or screening, as fast as the machine is
            with self.subTest(budget=budget):
                done = subprocess.run([PROGRAM, *map(str, ("search", *WORDS[2:], *RUN, "--budget", budget, "-o", "over",
                                                           "--json"))], cwd=self.directory, capture_output=True,
                                      text=True, env=environment_in(self.directory), timeout=PATIENCE_S)
                if done.returncode == 3:
                    self.assertIn("the time was over before a layout was found", done.stderr)
                    continue
                self.assertEqual(done.returncode, 0)
                found = json.loads(done.stdout)
                if found["fidelity"] == "bounds":
                    self.assertIn("not_looked_at", found)
                    self.assertIn("combinations_not_checked", found)
                elif found["fidelity"] == "packet":
                    unknown = found["open"]["not_looked_at"] + found["open"]["combinations_not_checked"]
                    self.assertEqual(found["settled"], found["open"]["layouts"] + unknown == 0)

    def test_only_the_model_and_the_cluster_must_be_said(self):
        with tempfile.TemporaryDirectory() as directory:
            found = run("search", "--model", "gpt3-1.3b", "--gpu", "h100", "--gpus", 4, "--global-batch", 16, "--tp", 4, "--pp", 1,
                        "--recompute", "none", directory=pathlib.Path(directory))
            self.assertIn("simulated", found.stdout)
            self.assertEqual(len(list((pathlib.Path(directory) / "runs").glob("gpt3-1.3b-*/results.h5"))), 1)

    def test_packets_that_were_asked_for_are_simulated(self):
        # Screening may take half of the time at most, and what it has is enough.
        found = json.loads(run("search", *WORDS[2:], "-j", 2, "--store", "none", "--packet", 2, "--budget", "20s", "-o",
                               "asked", "--json", directory=self.directory).stdout)
        self.assertEqual(found["fidelity"], "packet")
        self.assertIn(found["simulated"], (1, 2))

    def test_flags_that_no_layout_can_have_are_refused_before_any_work(self):
        said = run("search", *WORDS, *RUN, "--emit", "torchtitan", "-o", "flags", directory=self.directory,
                   expect=2).stderr
        self.assertIn("no layout can be given as torchtitan", said)
        self.assertIn("torchtitan has no flavor of 24 layers", said)
        self.assertFalse((self.directory / "flags").exists())
        self.assertFalse((self.directory / "flags.search").exists())

    def test_bad_words_are_refused_before_any_work(self):
        for words, said in (((), "--model is required"),
                            (("--model", "gpt3-13b"), "--cluster NAME or --gpu NAME is required"),
                            (("--model", "gpt3-13", "--cluster", "dgx_h100_superpod"), "did you mean"),
                            (WORDS + ("--nodes", "none"), "--nodes"),
                            (WORDS + ("--packet", -1), "--packet"),
                            (WORDS + ("--gpu", "h100_sxm"), "leave --gpu out"),
                            (WORDS + ("--tp", 3), "manyworlds search: --tp 3: no valid point: tp must divide"),
                            (WORDS + ("--precision", "fp9"), "manyworlds search: --precision fp9: 'strategy.stack."
                                                             "precision' must be one of bf16,"),
                            (WORDS + ("--set", "strategy.tensor=4"), "here it is strategy.tp"),
                            (WORDS + ("--stack", "megatron"), "megatron"),
                            (WORDS + ("--set", "fidelity=analytic"), "--packet 0 none"),
                            (WORDS + ("--sample", 10 ** 6), "valid points")):
            with self.subTest(words=words):
                self.assertIn(said, run("search", *words, directory=self.directory, expect=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
