"""`manyworlds search`: the sweep it prints is the one it runs, nothing better is left out, and packets follow."""

import json
import pathlib
import shutil
import tempfile
import unittest

from program import run

WORDS = ("--model", "gpt3-1.3b", "--cluster", "dgx_h100_superpod", "--nodes", 2, "--global-batch", 32)
RUN = ("-j", 1, "--in-process", "--store", "none")


class Search(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-search-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        said = run("search", *WORDS, *RUN, "--sample", 60, "-k", 5, "--packet", 4, "--json", directory=cls.directory)
        cls.found = json.loads(said.stdout)

    def sweep(self, *words):
        yaml = run("search", *WORDS, *words, "--sweep-yaml", directory=self.directory).stdout
        (self.directory / "printed.yaml").write_text(yaml)
        return yaml

    def test_the_best_are_those_of_the_sweep_it_prints(self):
        self.assertIn("sample: {experiments: 60, seed: 1}", self.sweep("--sample", 60))
        run("sweep", "printed.yaml", "-o", "printed", *RUN, directory=self.directory)
        top = json.loads(run("top", "printed", "-k", 1000, "--json", directory=self.directory).stdout)["rows"]
        self.assertGreater(len(top), 20)
        figures = ("id", "step_time_ps", "tokens_per_s_per_gpu", "mfu", "memory_peak_bytes", "fidelity")
        for mine, theirs in zip(self.found["top"]["rows"], top[:5], strict=True):
            self.assertEqual(mine["layout"], theirs["layout"])
            for name in figures:
                self.assertEqual(mine["columns"][name], theirs["columns"][name])
            self.assertEqual(mine["columns"]["fidelity"], "analytic")
        # The front: what no other beats in both, looked for in the plainest way.
        points = {row["columns"]["id"]: (row["columns"]["tokens_per_s_per_gpu"], row["columns"]["memory_peak_bytes"])
                  for row in top}
        beaten = lambda a: any(b[0] >= a[0] and b[1] <= a[1] and b != a for b in points.values())
        front = {points[row["columns"]["id"]] for row in self.found["pareto"]}
        self.assertEqual(front, {point for point in points.values() if not beaten(point)})

    def test_the_best_are_simulated_packet_by_packet(self):
        rows = self.found["packet"]["rows"]
        self.assertEqual(len(rows), 4)
        screened = [row["columns"] for row in self.found["top"]["rows"]]
        for row in rows:
            self.assertEqual(row["columns"]["fidelity"], "packet")
            self.assertGreaterEqual(row["columns"]["step_time_ps"], screened[row["columns"]["id"]]["step_time_ps"])

    def test_every_layout_that_can_be_is_in_the_space(self):
        self.sweep("--sample", "all", "--set", "strategy.recompute=none", "--set", "strategy.micro_batch=1")
        words = ("--set", "strategy.recompute=none", "--set", "strategy.micro_batch=1")
        run("sweep", "printed.yaml", "-o", "all", *words, *RUN, directory=self.directory)
        csv = run("export", "all", "--csv", directory=self.directory).stdout.splitlines()
        names = csv[0].split(",")
        has = {tuple(row.split(",")[names.index(key)] for key in
                     ("strategy.tp", "strategy.pp", "strategy.zero", "strategy.schedule", "strategy.virtual_stages"))
               for row in csv[1:]}
        gpus, batch, layers, heads = 16, 32, 24, 16
        expected = set()
        for tp in (1, 2, 4, 8):
            for pp in (1, 2, 4, 8, 16):
                for zero in (0, 1, 3):
                    for schedule, chunks in (("1f1b", 1), ("zb_h1", 1), ("interleaved", 2), ("interleaved", 4),
                                             ("zb_v", 2), ("dualpipev", 2)):
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

    def test_models_with_experts_have_their_axes_too(self):
        yaml = run("search", "--model", "mixtral-8x7b", "--cluster", "dgx_h100_superpod", "--sequence", 32768,
                   "--sample", 10, "--sweep-yaml", directory=self.directory).stdout
        self.assertIn("strategy.ep: [1, 2, 4, 8]", yaml)
        self.assertIn("strategy.cp: [1, 2, 4]", yaml)
        self.assertIn("global_batch: 256,", yaml)
        self.assertIn("dispatcher: [all_to_all, hybrid_ep]", yaml)

    def test_bad_words_are_refused_before_any_work(self):
        for words, said in (((), "model is missing"),
                            (("--model", "gpt3-13b"), "cluster is missing"),
                            (("--model", "gpt3-13", "--cluster", "dgx_h100_superpod"), "did you mean"),
                            (WORDS + ("--nodes", "none"), "--nodes"),
                            (WORDS + ("--packet", 0), "--packet"),
                            (WORDS + ("--stack", "megatron"), "megatron"),
                            (WORDS + ("--sample", 10 ** 6), "valid points")):
            with self.subTest(words=words):
                self.assertIn(said, run("search", *words, directory=self.directory, expect=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
