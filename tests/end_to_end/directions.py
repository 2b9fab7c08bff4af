"""What a change of one key does to the step time of half of Llama 3 8B on 32 H100: its direction and its size, each with the
reason why it must be so. The bounds are of the reason, not of what the program gave."""

import json
import pathlib
import shutil
import tempfile
import unittest

from program import run

SPEC = """\
base:
  model: {like: llama3-8b, sequence: 4096, layers: 16}
  cluster: {like: dgx_h100_superpod, nodes: 4}
  topology: rail_optimized
  strategy: {global_batch: 128, tp: 2}
axes:
"""
ROOMY = {"cluster.gpu.memory_gib": 1000}  # so that whatever is compared fits
SHARDED = {"strategy.tp": 1, "strategy.zero": 3, "strategy.stack": "torch-fsdp", "strategy.global_batch": 32}


class Directions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-directions-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)

    def column(self, key, values, name="step_time_s", **fixed):
        """`name` of the experiments that differ in `key` alone, by its value."""
        fixed = {**fixed.pop("base", {}), **fixed}
        (self.directory / "spec.yaml").write_text(SPEC + f"  {key}: {json.dumps(values)}\n")
        words = [word for fixed_key, value in fixed.items() for word in ("--set", f"{fixed_key}={value}")]
        shutil.rmtree(self.directory / "run", ignore_errors=True)
        run("sweep", "spec.yaml", "-o", "run", "-j", 2, "--in-process", "--store", "none", *words,
            directory=self.directory, timeout=1200)
        rows = json.loads(run("top", "run", "-k", 100, "--by", "id asc", "--json", directory=self.directory).stdout)
        self.assertEqual(len(rows["rows"]), len(values))
        return [row["columns"][name] for row in rows["rows"]]

    def assert_ratio(self, slow, fast, least, most):
        self.assertGreaterEqual(slow / fast, least)
        self.assertLessEqual(slow / fast, most)

    def assert_falls(self, figures, slack=0.0):
        for before, after in zip(figures, figures[1:]):
            self.assertLessEqual(after, before * (1 + slack), figures)

    def test_nics_bind_what_crosses_them(self):
        """Sharded parameters cross the NICs three times a step. At 25 Gb/s nothing hides that: twice the rate halves it.
        At 400 Gb/s it hides behind kernels. Tensor parallelism stays in the node: an eighth of the gradients is left for
        each NIC, once for all micro-batches."""
        times = self.column("cluster.nic_gbps", [25, 50, 100, 200, 400, 800], base=SHARDED)
        self.assert_falls(times)
        self.assert_ratio(times[0], times[1], 1.6, 2)
        self.assert_ratio(times[4], times[5], 1, 1.15)
        inside = self.column("cluster.nic_gbps", [25, 800], **{"strategy.tp": 8, "strategy.global_batch": 256})
        self.assert_ratio(inside[0], inside[1], 1, times[0] / times[5] / 2)

    def test_channels_are_nics(self):
        """A ring over whole nodes leaves each by as many NICs as it has channels; eight are all there are, and the
        default. With 50 Gb/s each, the NICs bind."""
        times = self.column("collectives.channels", [1, 2, 4, 8, 0], base=SHARDED,
                            **{"cluster.nic_gbps": 50, "collectives.protocol": "none", "collectives.all_reduce": "ring"})
        self.assert_falls(times)
        self.assert_ratio(times[0], times[1], 1.6, 2)
        self.assert_ratio(times[0], times[3], 3, 8)
        self.assertEqual(times[3], times[4])

    def test_oversubscription_and_hashing_cost_what_crosses_the_spines(self):
        """Fewer uplinks than hosts: what leaves the leaf waits. Hashed, some links get more than others, and some none;
        a path for each destination has no collisions."""
        words = {"cluster.nodes": 2, "strategy.tp": 1, "strategy.global_batch": 16, "model.layers": 4}
        times = self.column("topology.oversubscription", [1, 2, 4, 8], **words, **{
            "topology": "{fat_tree: {leaf_hosts: 8}}", "transport.routing": "ecmp_hash"})
        self.assert_falls(times[::-1], 0.002)
        self.assert_ratio(times[3], times[0], 1.02, 8)
        times = self.column("transport.routing", ["destination_mod_k", "ecmp_hash"], **words,
                            **{"topology": "{fat_tree: {leaf_hosts: 8}}"})
        self.assert_ratio(times[1], times[0], 1, 4)

    def test_zero_trades_memory_for_traffic(self):
        """Stage 1 and 2 move what an all-reduce does, in halves; 3 gathers parameters once more."""
        words = {"strategy.stack.overlap_parameters": "false", **ROOMY}
        memory = self.column("strategy.zero", [0, 1, 2, 3], "memory_peak_bytes", **words)
        self.assertGreater(memory[0], memory[1])
        self.assertGreaterEqual(memory[1], memory[2])
        self.assertGreater(memory[2], memory[3])
        times = self.column("strategy.zero", [0, 1, 2, 3], **words)
        self.assert_ratio(times[1], times[0], 0.9, 1.1)
        self.assert_ratio(times[3], times[1], 0.98, 2)

    def test_fewer_bits_are_faster_but_by_less_than_their_peak(self):
        """FP8 doubles the peak of the GEMMs alone; NVIDIA publishes 1.4 to 1.6 times for whole steps of larger models."""
        times = self.column("strategy.stack.precision", ["bf16", "fp8"])
        self.assert_ratio(times[0], times[1], 1.15, 2)
        words = {"cluster": "{like: dgx_b200_superpod, nodes: 4}"}
        times = self.column("strategy.stack.precision", ["bf16", "fp8", "nvfp4"], **words)
        self.assert_ratio(times[0], times[1], 1.1, 2)
        self.assert_ratio(times[1], times[2], 1, 2)

    def test_newer_software_is_not_slower(self):
        """Fused attention, then overlaps and fused kernels."""
        times = self.column("strategy.stack", ["megatron-2021", "megatron-2023", "megatron-core", "megatron-bridge"], **ROOMY)
        self.assert_falls(times, 0.01)
        self.assert_ratio(times[0], times[2], 1.1, 2.5)

    def test_recomputation_costs_a_forward_pass(self):
        """A step is one forward and about two of it backward; recomputing everything makes it four thirds at most."""
        times = self.column("strategy.recompute", ["none", "full"])
        self.assert_ratio(times[1], times[0], 1.15, 1.4)
        memory = self.column("strategy.recompute", ["none", "full"], "memory_peak_bytes")
        self.assertGreater(memory[0], memory[1])

    def test_more_tensor_parallelism_takes_less_memory(self):
        memory = self.column("strategy.tp", [1, 2, 4, 8], "memory_peak_bytes")
        self.assert_falls(memory)


if __name__ == "__main__":
    unittest.main(verbosity=2)
