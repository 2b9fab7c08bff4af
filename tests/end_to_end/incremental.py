"""A step that differs from one that is known in one stage, layer or cable: only what that touches is simulated."""

import pathlib
import shutil
import tempfile
import unittest

from program import answer_digest, provenance, run

# GPT-3 175B, Megatron-LM's layers and sizes, on 1,024 GPUs; TOPOLOGY is replaced.
SPEC = """
name: step
assume: 2021
base:
  model: gpt3-175b
  cluster: {like: dgx_h100_superpod, nodes: 128}
  topology: TOPOLOGY
  strategy: {tp: 8, pp: 16, sequence_parallel: true, micro_batch: 1, global_batch: 512, stack: megatron-core, zero: 1,
             recompute: full, stage_layers: [LAYERS], stage_recompute_layers: [RECOMPUTED]}
axes:
  strategy.overlap_grad_reduce: [true]
"""
LAYERS, RECOMPUTED = [6] * 16, [2] + [1] * 15
RAILS, TREE = "rail_optimized", "{fat_tree: {oversubscription: 2}}"


def with_stage(numbers, stage, number):
    return numbers[:stage] + [number] + numbers[stage + 1:]


class Incremental(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-incremental-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def simulated(self, store, topology=RAILS, layers=LAYERS, recomputed=RECOMPUTED, more=()):
        """Runs one step with a store of this name and returns its run and how many link-hops were simulated."""
        spec = SPEC.replace("TOPOLOGY", topology)
        for name, numbers in [("LAYERS", layers), ("RECOMPUTED", recomputed)]:
            spec = spec.replace(name, ", ".join(map(str, numbers)))
        (self.directory / "step.yaml").write_text(spec)
        name = f"run{len(list(self.directory.glob('run*')))}"
        run("sweep", "step.yaml", "-o", name, "--store", store, "-j", "1", *more, directory=self.directory)
        figures = provenance(self.directory / name / "results.h5")
        self.assertGreater(figures["link_hops_transferred"], 5e10)
        return name, figures["link_hops_simulated"]

    def assert_incremental(self, most, topology=RAILS, **change):
        """After the step that is not changed, the changed one simulates at most this share of what it does alone."""
        self.simulated("store", topology)
        after, new = self.simulated("store", topology, **change)
        alone, whole = self.simulated("none", topology, **change)
        self.assertEqual(run("diff", after, alone, directory=self.directory).stdout, "same results\n")
        self.assertEqual(*(answer_digest(self.directory / name / "results.h5") for name in (after, alone)))
        self.assertLess(new, most * whole)

    def test_a_stage_that_recomputes_more(self):
        self.assert_incremental(0.2, recomputed=with_stage(RECOMPUTED, 1, 2))

    def test_a_stage_that_recomputes_more_where_collectives_of_stages_meet(self):
        self.assert_incremental(0.4, TREE, recomputed=with_stage(RECOMPUTED, 1, 2))

    def test_a_layer_on_another_stage(self):
        self.assert_incremental(0.5, layers=with_stage(with_stage(LAYERS, 7, 7), 15, 5))

    def test_a_slow_cable(self):
        # Collectives over it have no members any more that packets cannot tell apart; all others are known.
        self.assert_incremental(0.95, more=["--set", "faults={slow: 'gpu3-rail3=0.5'}"])


if __name__ == "__main__":
    unittest.main()
