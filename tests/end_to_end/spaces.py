"""Spaces that are too large to be listed: the best of all of them, with a proof, whatever interrupts the sweep."""

import json
import pathlib
import shutil
import tempfile
import unittest

from program import SWEEPS, answer_digest, kill_and_resume, provenance, run

SPACE = """
name: space
assume: 2021
base:
  model: {like: gpt3-1.3b, layers: 8}
  cluster: {like: dgx_h100_superpod, nodes: 4}
  topology: {fat_tree: {oversubscription: 4}}
  strategy: {global_batch: 64, stack: megatron-core}
axes:
  strategy.tp: [1, 2, 8]
  strategy.pp: [1, 2, 4]
  strategy.micro_batch: [1, 2, 4]
  strategy.recompute: [none, selective, full]
  strategy.overlap_grad_reduce: [true, false]
  strategy.bucket_parameters: {range: [10000000, 325000000, "+5000000"]}
zip:
  - {strategy.zero: [0, 1, 1, 2, 3], strategy.stack.overlap_parameters: [false, false, true, true, false]}
  - {strategy.schedule: [1f1b, interleaved, zb_h1], strategy.virtual_stages: [1, 2, 1]}
where: ['strategy.pp > 1 or strategy.schedule == "1f1b"']
"""

STAGES = """
name: any
assume: 2021
base:
  model: {like: gpt3-2.7b, layers: 14}
  cluster: {like: dgx_h100_superpod, nodes: 1, second: {nodes: 1, gpu: a100_40, nic_gbps: 200}}
  topology: {fat_tree: {oversubscription: 2}}
  strategy: {global_batch: 128, zero: 1, stack: megatron-core}
axes:
  strategy.pp: [2, 4, 8]
  strategy.micro_batch: [1, 2, 4]
  strategy.stage_layers: any
  strategy.stage_recompute_layers: any
  strategy.recompute: [none, selective, full]
zip:
  - {strategy.schedule: [1f1b, interleaved], strategy.virtual_stages: [1, 2]}
best: 1
"""


class Spaces(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-spaces-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def sweep(self, *words, **more):
        return run("sweep", *words, directory=self.directory, **more)

    def assert_same(self, *runs):
        for other in runs[1:]:
            self.assertEqual(run("diff", runs[0], other, directory=self.directory).stdout, "same results\n")
            self.assertEqual(*(answer_digest(self.directory / name / "results.h5") for name in (runs[0], other)))

    def test_a_space_that_is_too_large_to_be_listed_has_a_proven_best_whatever_interrupts_it(self):
        (self.directory / "space.yaml").write_text(SPACE)
        told = self.sweep("space.yaml", "--best", "2", "--gap", "1%", "-o", "space", "--store", "none", "-j", "2").stderr
        self.assertRegex(told, r"155,520 points: [\d,]+ bounds list the best \d+ of them, no other is better")
        self.assertRegex(told, r"the best 2 are proven: \d+ were simulated")
        self.assertLess(provenance(self.directory / "space/results.h5")["space_bounds"], 155520 / 4)
        self.assertLessEqual(provenance(self.directory / "space/results.h5")["best_gap"], 0.01)
        run("report", "space", "--md", "-o", "space.md", directory=self.directory)
        self.assertRegex((self.directory / "space.md").read_text(), r"Proof of the best(.|\n)*points of the axes *\| +155,520")
        # The gap that is drawn ends as that which is proven, whatever the sweep does not list.
        told = json.loads(run("explain", "space", "--json", directory=self.directory).stdout)
        last = told["closing"][-1]
        self.assertEqual(last["simulated"], told["ladder"][-1]["looked_at"])
        self.assertAlmostEqual((last["open"] - last["known"]) / last["known"], provenance(self.directory / "space/results.h5")["best_gap"], places=12)
        unlisted = provenance(self.directory / "space/results.h5")["space_bound"]
        self.assertTrue(all(value["bound"] >= unlisted for value in told["values"]))
        kill_and_resume(self, self.directory, "space.yaml", "--best", "2", "--gap", "1%")
        self.sweep("space.yaml", "--best", "2", "--gap", "1%", "-o", "apart", "--store", "none", "-j", "1", "--no-sharing")
        self.assert_same("space", "killed", "apart")
        gaps = {provenance(self.directory / name / "results.h5")["best_gap"] for name in ("space", "killed", "apart")}
        self.assertEqual(len(gaps), 1)
        # The best of a part of the space, all of which is simulated, is no better than that.
        self.sweep("space.yaml", "--set", "strategy.bucket_parameters=40000000", "-o", "part", "--store", "none")
        best = [json.loads(run("top", name, "-k", "1", "--json", directory=self.directory).stdout)["rows"][0]["columns"]
                for name in ("space", "part")]
        self.assertGreaterEqual(best[0]["tokens_per_s_per_gpu"], 0.99 * best[1]["tokens_per_s_per_gpu"])

    def test_stages_with_any_layers_have_a_proven_best_whatever_interrupts_it(self):
        (self.directory / "any.yaml").write_text(STAGES)
        told = self.sweep("any.yaml", "-o", "any", "--store", "none", "-j", "2").stderr
        self.assertRegex(told, r"any layers of their stages: their lower bounds, best first")
        self.assertRegex(told, r"[\d,]+ points: [\d,]+ bounds list the best \d+ of them, no other is better than these bounds")
        self.assertRegex(told, r"the best 1 are proven: \d+ were simulated")
        self.assertGreater(provenance(self.directory / "any/results.h5")["space_points"], 1e4)
        kill_and_resume(self, self.directory, "any.yaml")
        self.sweep("any.yaml", "-o", "apart", "--store", "none", "-j", "1", "--no-sharing")
        self.assert_same("any", "killed", "apart")
        # Equal stages, all of which are simulated, are no better than the proof allows.
        self.sweep("any.yaml", "-o", "equal", "--store", "none", "--set", "strategy.stage_layers=none", "--set",
                   "strategy.stage_recompute_layers=none", "--set", "strategy.empty_layers=2", "--best", "100")
        rate = {name: json.loads(run("top", name, "-k", "1", "--json", directory=self.directory).stdout)["rows"][0]["columns"]
                ["tokens_per_s_per_gpu"] for name in ("any", "equal")}
        self.assertLess(rate["equal"], rate["any"] * (1 + provenance(self.directory / "any/results.h5")["best_gap"]))
        # Half of the machines is slower: with equal stages the others wait.
        self.assertGreater(rate["any"], 1.1 * rate["equal"])

    def test_gaps_are_shares_and_belong_to_the_best(self):
        tiny = SWEEPS / "tiny.yaml"
        self.assertEqual(self.sweep(tiny, "--gap", "2%", expect=2).stderr,
                         "manyworlds sweep: --gap: belongs to the best of a sweep: add 'best: 1'\n")
        for gap in ("x", "-1%", "100%", "1"):
            self.assertIn("is a share of the objective from 0 to below 1, as in 2% or 0.02, not",
                          self.sweep(tiny, "--best", "1", f"--gap={gap}", expect=2).stderr)
        (self.directory / "mine.yaml").write_text(tiny.read_text() + "gap: 2%\n")
        self.assertRegex(self.sweep("mine.yaml", expect=2).stderr, r"mine.yaml:\d+: 'gap' belongs to the best")
        (self.directory / "mine.yaml").write_text(tiny.read_text() + "best: 1\ngap: 2 %\n")
        self.assertIn("the best 1 are proven", self.sweep("mine.yaml", "-o", "mine", "--store", "none").stderr)


if __name__ == "__main__":
    unittest.main()
