"""`manyworlds phases`: the examples of docs/phases.md on shared and on separate GPUs, and what is refused."""

import json
import pathlib
import shutil
import tempfile
import unittest

from program import ROOT, run

EXAMPLES = ROOT / "experiments" / "rl"
ANALYTIC = ("--set", "fidelity=analytic", "--in-process")
SMALL = """name: small
base:
  model: {like: gpt3-1.3b, layers: 4}
  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 4, nic_gbps: 400}
  fidelity: analytic
pools: {trainers: 4, generators: 4}
phases:
  - {name: rollout, kind: generation, on: generators, prompts: 8, responses: 2, prompt_tokens: 64, response_tokens: 33,
     concurrent: 4, base: {strategy.tp: 2}}
  - {name: update, kind: training, on: trainers, base: {strategy.tp: 4, strategy.micro_batch: 1}}
  - {name: weights, kind: transfer, from: update, to: rollout, bucket: 64MiB}
"""


class Phases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-phases-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)

    def phases(self, text, *words, expect=0):
        (self.directory / "phases.yaml").write_text(text)
        return run("phases", "phases.yaml", *words, directory=self.directory, expect=expect)

    def told(self, file, *words):
        return json.loads(run("phases", file, "--json", *words, directory=self.directory).stdout)

    def test_phases_on_shared_gpus_follow_each_other(self):
        told = self.told(EXAMPLES / "grpo-8b-shared.yaml", *ANALYTIC)
        by_name = {phase["phase"]: phase for phase in told["phases"]}
        begin = 0
        for phase in told["phases"]:
            self.assertAlmostEqual(phase["begin_s"], begin, places=9)
            begin += phase["time_s"]
        self.assertAlmostEqual(told["iteration_s"], begin, places=9)
        self.assertAlmostEqual(sum(phase["share"] for phase in told["phases"]), 1, places=9)
        self.assertAlmostEqual(told["pools"][0]["idle"], 0, places=9)
        self.assertEqual(told["samples"], 2048)
        self.assertAlmostEqual(told["samples_per_s"] * told["iteration_s"], 2048, places=6)
        self.assertEqual(told["tokens"], by_name["rollout"]["tokens"] + 2048 * 128)
        self.assertEqual((by_name["weights"]["time_s"], by_name["weights"]["transfer"]["buckets"]), (0, 0))
        # Llama 3 8B in bf16, and what of it and of the optimizer's states of eight ranks passes the host link twice.
        self.assertEqual(by_name["weights"]["transfer"]["weight_bytes"], 2 * 8_030_261_248)
        self.assertGreater(by_name["update"]["host_bytes"], 2 * 2 * 8.03e9)
        self.assertEqual(by_name["policy"]["host_bytes"], by_name["reference"]["host_bytes"])
        self.assertEqual(by_name["rollout"]["host_bytes"], 0)

    def test_pools_of_an_asynchronous_iteration_work_at_the_same_time(self):
        told = self.told(EXAMPLES / "grpo-8b-separate.yaml", "--set", "fidelity=fluid", "--in-process")
        self.assertEqual(told["iteration_s"], max(pool["busy_s"] for pool in told["pools"]))
        weights = told["phases"][-1]
        self.assertEqual((weights["gpus"], weights["transfer"]["receivers"], weights["transfer"]["gathered_over"]), (16, 8, 1))
        # No broadcast over one NIC of 50 GB/s is faster than its bytes, and one that is pipelined not much slower.
        nic_s = weights["transfer"]["weight_bytes"] / 50e9
        self.assertTrue(nic_s < weights["time_s"] < 1.3 * nic_s, weights["time_s"])
        # With all trainers in its group, a broadcast leaves its node by all eight.
        text = (EXAMPLES / "grpo-8b-separate.yaml").read_text().replace("    to: rollout", "    to: rollout\n    group: all_trainers")
        wide = json.loads(self.phases(text, "--set", "fidelity=fluid", "--in-process", "--json", "-o", "wide").stdout)["phases"][-1]
        self.assertEqual(wide["transfer"]["receivers"], 15)
        self.assertTrue(nic_s / 8 < wide["time_s"] < 2 * nic_s / 8, wide["time_s"])
        busy = {pool["pool"]: pool["busy_s"] for pool in told["pools"]}
        self.assertAlmostEqual(busy["generators"], told["phases"][0]["time_s"] + weights["time_s"], places=9)

    def test_the_same_line_goes_on_and_ranks_change_nothing(self):
        first = self.phases(SMALL, "-o", "one", "--in-process").stdout
        self.assertEqual(self.phases(SMALL, "-o", "one", "--in-process").stdout, first)
        self.assertEqual(self.phases(SMALL, "-o", "two", "-j", "2").stdout, first)
        self.assertIn("gathered over 4 ranks, broadcast to 4 GPUs", first)

    def test_what_a_phase_decides_itself_holds_whatever_is_set(self):
        def told(text, *words):
            run_directory = tempfile.mkdtemp(dir=self.directory) + "/run"
            return json.loads(self.phases(text, "--json", "-o", run_directory, "--in-process", *words).stdout)

        def iteration(text, *words):
            return told(text, *words)["iteration_s"]

        said = iteration(SMALL)
        self.assertEqual(iteration(SMALL, "--set", "model={like: gpt3-1.3b, layers: 4}"), said)
        scoring = SMALL.replace("layers: 4}", "layers: 4, inference: scoring}")
        self.assertEqual(iteration(scoring), said)
        self.assertEqual(iteration(SMALL, "--set", "model.inference=scoring"), said)
        self.assertLess(iteration(SMALL, "--set", "model.layers=2"), said)
        two_replicas = SMALL.replace("base: {strategy.tp: 4", "base: {strategy.tp: 2")
        whole, sharded = (told(two_replicas, "--set", f"strategy.zero={zero}") for zero in (0, 3))
        self.assertEqual(whole["phases"][0]["time_s"], sharded["phases"][0]["time_s"])
        self.assertEqual(whole["replaced"], [])
        self.assertEqual(sharded["replaced"], ["rollout: strategy.zero=0 instead of 3, for weights that each replica has whole "
                                               "and gathers at no step"])
        cut = self.phases(SMALL.replace("response_tokens: 33", "response_tokens: 33, max_tokens: 20"), "--in-process", "-o", "cut")
        self.assertIn("rollout: 16 of 16 responses end at max_tokens 20", cut.stdout)
        fewer = self.phases(SMALL.replace("strategy.micro_batch: 1", "strategy.micro_batch: 1, strategy.global_batch: 4"), "--in-process")
        self.assertIn("update: trains 4 samples, of 16 that rollouts make", fewer.stdout)

    def test_a_resumed_run_tells_its_iteration(self):
        (self.directory / "lengths.csv").write_text("tokens,documents\n20,3\n40,1\n")
        tabled = SMALL.replace("response_tokens: 33", "response_tokens: {file: lengths.csv}")
        for text, name in ((SMALL, "plain"), (tabled, "tabled")):
            words = ("--set", "strategy.micro_batch=2", "-o", name, "--in-process")
            for form in ((), ("--json",)):
                told = self.phases(text, *words, *form).stdout
                self.assertEqual(run("resume", name, "--in-process", *form, directory=self.directory).stdout, told)
        (self.directory / "lengths.csv").unlink()
        self.assertIn("takes", run("resume", "tabled", "--in-process", directory=self.directory).stdout)

    def test_parts_of_phases_are_listed_and_not_ranked(self):
        self.phases(SMALL, "-o", "parts", "--in-process")
        top = run("top", "parts", directory=self.directory).stdout
        self.assertEqual([line.split()[0] for line in top.splitlines()[1:-1]], [str(i) for i in range(len(top.splitlines()) - 2)])
        self.assertNotIn("from #1", top)
        self.assertIn("`manyworlds resume parts` tells the iteration", top)
        self.assertIn("from #1", run("top", "parts", "--by", "step_time_s", directory=self.directory).stdout)
        status = run("status", "parts", directory=self.directory).stdout
        self.assertIn("experiments: ", status)
        self.assertNotIn("best of", status)

    def test_pairs_of_low_rank_are_merged_before_a_model_generates_or_scores(self):
        scoring = SMALL + "  - {name: policy, kind: scoring, from: update, on: trainers, base: {strategy.tp: 4, strategy.micro_batch: 1}}\n"
        without = json.loads(self.phases(scoring, "--json", "-o", "without", "--in-process").stdout)
        of_update = scoring.replace("strategy.micro_batch: 1}}\n", "strategy.micro_batch: 1, model.lora_rank: 16}}\n", 1)
        for text, name, words in ((of_update, "update", ()), (scoring, "all", ("--set", "model.lora_rank=16"))):
            told = json.loads(self.phases(text, "--json", "-o", "pairs-" + name, "--in-process", *words).stdout)
            rollout, update, weights, policy = told["phases"]
            self.assertEqual(rollout["time_s"], without["phases"][0]["time_s"])
            self.assertEqual(policy["time_s"], without["phases"][3]["time_s"])
            self.assertEqual(weights["transfer"], without["phases"][2]["transfer"] | {"merged_rank": 16})
            self.assertLess(update["memory_peak_bytes"], without["phases"][1]["memory_peak_bytes"])
        whole = SMALL.replace("strategy.tp: 4,", "strategy.tp: 1,")
        four_bits = whole.replace("strategy.tp: 1,", "strategy.tp: 1, model.lora_rank: 16, model.frozen_weights: nf4,")
        (rollout, _, weights), (rollout_of_pairs, _, merged) = (
            json.loads(self.phases(text, "--json", "-o", name, "--in-process").stdout)["phases"]
            for text, name in ((whole, "whole"), (four_bits, "pairs-nf4")))
        self.assertEqual(rollout_of_pairs["time_s"], rollout["time_s"])
        self.assertEqual(merged["transfer"], weights["transfer"] | {"merged_rank": 16})
        self.assertIn("into which pairs of rank 16 are merged", self.phases(of_update, "-o", "pairs-update", "--in-process").stdout)

    def test_fewer_heads_of_keys_than_ranks_are_copied_to_the_ranks_that_generate(self):
        layout = SMALL.replace("strategy.tp: 2", "strategy.tp: 4").replace("strategy.tp: 4, strategy.m", "strategy.tp: 2, strategy.m")
        two, four = (self.phases(layout.replace("layers: 4}", f"layers: 4, kv_heads: {heads}}}"), "--json", "-o", f"heads-{heads}",
                                 "--in-process").stdout for heads in (2, 4))
        (rollout, _, weights), (other, _, others) = (json.loads(text)["phases"] for text in (two, four))
        for key in ("time_s", "memory_peak_bytes"):
            self.assertEqual(rollout[key], other[key])
        # Two heads of 128 for keys and values less in each layer, with their biases, of 2 bytes.
        fewer = 4 * 2 * (2 * 128) * (2048 + 1) * 2
        self.assertEqual(others["transfer"]["weight_bytes"] - weights["transfer"]["weight_bytes"], fewer)
        copies = "2 heads of keys and values, which engines copy to 4 tensor ranks"
        self.assertEqual(json.loads(two)["replaced"], [f"rollout: model.kv_heads=4 instead of 2, for {copies}"])
        self.assertEqual(json.loads(four)["replaced"], [])

    def test_another_layout_on_the_same_gpus_gathers_and_the_same_does_not(self):
        shared = SMALL.replace("pools: {trainers: 4, generators: 4}\n", "").replace(" on: generators,", "").replace(" on: trainers,", "")
        moved = json.loads(self.phases(shared, "--json", "-o", "moved", "--in-process").stdout)["phases"][-1]
        self.assertEqual((moved["transfer"]["gathered_over"], moved["transfer"]["receivers"]), (4, 0))
        self.assertGreater(moved["time_s"], 0)
        same = shared.replace("strategy.tp: 2", "strategy.tp: 4")
        self.assertEqual(json.loads(self.phases(same, "--json", "-o", "same", "--in-process").stdout)["phases"][-1]["time_s"], 0)

    def test_what_is_wrong_is_said_on_one_line_with_its_place(self):
        for old, new, message in (
                ("prompts: 8", "promts: 8", "phases.yaml:8: unknown key 'promts'; did you mean 'prompts'"),
                ("response_tokens: 33", "response_tokens: 0", "phases.yaml:8: 'response_tokens' must be an integer from 1"),
                ("kind: training", "kind: trainin", "'kind' must be one of training, scoring, generation, transfer"),
                ("on: trainers, base", "on: nobody, base", "phases.yaml:10: 'on': unknown pool 'nobody'; there are 'trainers', 'generators'"),
                ("on: trainers, base", "on: trainer, base", "phases.yaml:10: 'on': unknown pool 'trainer'; did you mean 'trainers'"),
                ("trainers: 4, generators: 4", "trainers: 4, generators: 8",
                 "phases.yaml:6: 'pools' have 12 GPUs together, and 'cluster' of 'base' has 8"),
                ("base: {strategy.tp: 4", "base: {strategy.tp: 3", "phases.yaml:10: phase 'update': its strategy of tp 3 x pp 1 x cp 1"),
                ("base: {strategy.tp: 4", "base: {strategy.tq: 4", "phases.yaml:10: unknown key 'strategy.tq'; did you mean"),
                ("base: {strategy.tp: 2}", "base: {strategy.tp: 2, strategy.sequence_parallel: true}",
                 "phases.yaml:9: phase 'rollout': 'strategy.sequence_parallel' of a rollout follows from its kind"),
                ("base: {strategy.tp: 2}", "base: {strategy.tp: 2, strategy.cp: 2}",
                 "phases.yaml:9: phase 'rollout': 'strategy.cp' of a rollout must be 1, not 2"),
                ("fidelity: analytic", "fidelity: analytic\n  strategy: {cp: 2}",
                 "phases.yaml:6: phase 'rollout': 'strategy.cp' of a rollout must be 1, not 2"),
                ("strategy.micro_batch: 1}", "\n     strategy.micro_batch: 3}",
                 "phases.yaml:11: phase 'update': 'strategy.micro_batch' violates rule batch_by_replicas: global_batch must be a multiple of "
                 "dp x micro_batch: global_batch 16, dp x micro_batch 3; global_batch 16 follows from the 16 samples of 'rollout' in 1 step"),
                ("response_tokens: 33", "response_tokens: {file: none.csv}",
                 "phases.yaml:8: phase 'rollout': 'response_tokens.file': none.csv: cannot be read"),
                ("base: {strategy.tp: 2}", "base: {strategy.tp: 2, model.layers: 2}",
                 "phases.yaml:11: phase 'weights': 'update' and 'rollout' have models of different sizes"),
                ("kind: training, on: trainers,", "kind: scoring, from: other, on: trainers,", "'from': unknown phase 'other'"),
                ("from: update", "from: updat", "phases.yaml:11: 'from': unknown phase 'updat'; did you mean 'update'"),
                ("bucket: 64MiB", "group: trainers", "phases.yaml:11: 'group' must be one of first_trainer, all_trainers"),
                ("bucket: 64MiB", "steps: 2", "it is of training and scoring, and this phase is of kind transfer")):
            self.assertIn(old, SMALL)
            done = self.phases(SMALL.replace(old, new, 1), "--in-process", expect=2)
            self.assertIn(message, done.stderr)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
        done = self.phases(SMALL, "--set", "strategy.cp=2", "--in-process", expect=2)
        self.assertIn("phases: --set strategy.cp=2: phase 'rollout': 'strategy.cp' of a rollout must be 1, not 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
