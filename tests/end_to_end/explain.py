"""`manyworlds explain SPEC`: all that a layout breaks, or what each choice costs, as `run` with another says. And `explain RUN`:
why the best of a sweep are its best."""

import json
import pathlib
import re
import shlex
import shutil
import tempfile
import unittest

from program import ROOT, run

SPEC = """
name: small
base:
  model: {like: gpt3-125m, layers: 8, sequence: 256, vocabulary: 8192}
  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}
  strategy:
    tp: 2
    pp: 2
    micro_batch: 2
    global_batch: 16
    sequence_parallel: true
    recompute: full
    zero: 1
    stack: {attention: cudnn, overlap_input_gradient: true}
assume: 2021
"""
# (key, instead, what has to change with it): one replica cuts no states, and one rank no sequence
VARIANTS = [("strategy.tp", 1, {"strategy.sequence_parallel": False}), ("strategy.tp", 4, {"strategy.zero": 0}),
            ("strategy.pp", 1, {}), ("strategy.pp", 4, {"strategy.zero": 0}), ("strategy.cp", 2, {}),
            ("strategy.micro_batch", 1, {}), ("strategy.micro_batch", 4, {}),
            ("strategy.recompute", "none", {}), ("strategy.recompute", "selective", {}),
            ("strategy.sequence_parallel", False, {}), ("strategy.zero", 0, {}), ("strategy.zero", 3, {}),
            ("strategy.stack.attention", "unfused", {}), ("strategy.stack.overlap_input_gradient", False, {})]
EXPOSED = [f"exposed_{part}_s" for part in ("tp", "dp", "pp", "cp", "ep")]


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-explain-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        (cls.directory / "small.yaml").write_text(SPEC)

    def say(self, verb, *sets, expect=0, spec="small.yaml"):
        words = [word for pair in sets for word in ("--set", pair)]
        return run(verb, spec, "--json", *words, directory=self.directory, expect=expect)

    def test_a_choice_costs_what_running_with_it_says(self):
        told = json.loads(self.say("explain").stdout)
        self.assertFalse(told["refused"])
        whole = json.loads(self.say("run").stdout)
        for name in ("step_time_ps", "memory_peak_bytes", "status", "fidelity"):
            self.assertEqual(told["layout"][name], whole[name])
        self.assertEqual([(one["key"], one["instead"], one["along"]) for one in told["variants"]], VARIANTS)
        changes = 0
        for one in told["variants"]:
            self.assertNotIn("why_not", one)
            sets = [f"{key}={str(value).lower()}" for key, value in {one["key"]: one["instead"], **one["along"]}.items()]
            alone = json.loads(self.say("run", *sets).stdout)
            self.assertEqual(one["memory_change_bytes"], alone["memory_peak_bytes"] - whole["memory_peak_bytes"])
            self.assertAlmostEqual(one["step_time_change_s"], (alone["step_time_ps"] - whole["step_time_ps"]) / 1e12,
                                   places=12)
            exposed = sum(alone[part] - whole[part] for part in EXPOSED)
            self.assertAlmostEqual(one["exposed_change_s"], exposed, places=12)
            changes += one["step_time_change_s"] != 0
        self.assertGreaterEqual(changes, 10)

    def test_what_hangs_on_a_choice_changes_with_it(self):
        sets = ("assume=today", "strategy.zero=1", "strategy.schedule=interleaved", "strategy.virtual_stages=2",
                "strategy.stack=megatron-core")
        along = {(one["key"], one["instead"]): one["along"]
                 for one in json.loads(self.say("explain", *sets).stdout)["variants"] if "why_not" not in one}
        self.assertEqual(along["strategy.zero", 0], {"strategy.stack.overlap_parameters": False})
        self.assertEqual(along["strategy.schedule", "1f1b"], {"strategy.virtual_stages": 1})
        self.assertEqual(along["strategy.sequence_parallel", False], {"strategy.stack.overlap_tensor": False})
        self.assertEqual(along["strategy.pp", 1], {"strategy.schedule": "1f1b", "strategy.virtual_stages": 1})

    def test_text_says_the_same(self):
        text = run("explain", "small.yaml", directory=self.directory).stdout
        for words in ("small: ran", "fidelity          packet", "breakdown, mean over ranks", "peak memory",
                      "effect of changing one choice", "strategy.recompute", "sequence_parallel=false",
                      "80 % interval"):
            self.assertIn(words, text)
        analytic = run("explain", "small.yaml", "--set", "fidelity=analytic", directory=self.directory).stdout
        self.assertIn("analytic: step times are lower bounds", analytic)

    def test_a_layout_that_does_not_fit_says_what_would_and_what_not(self):
        # Full recomputation keeps the input of a layer, 2 s b h / tp = 0.4 GB; without it scores and the rest are 30 GB.
        told = json.loads(self.say("explain", "strategy.micro_batch=2048", "strategy.global_batch=8192").stdout)
        none = next(one for one in told["variants"] if one["instead"] == "none")
        self.assertEqual(told["layout"]["status"], "ran")
        self.assertIn("does not fit", none["why_not"])
        self.assertGreater(none["memory_change_bytes"], 0)
        self.assertNotIn("step_time_change_s", none)

    def test_every_broken_rule_is_told_with_its_source(self):
        sets = ("strategy.tp=8", "cluster.gpus_per_node=6", "strategy.sequence_parallel=true", "model.sequence=255",
                "strategy.zero=3", "strategy.stack.overlap_parameters=true")
        told = json.loads(self.say("explain", *sets).stdout)
        self.assertTrue(told["refused"])
        rules = {rule["rule"]: rule for rule in told["rules"]}
        self.assertEqual(list(rules), ["tp_by_node", "heads_by_tp", "kv_heads_by_tp", "gpus_by_tp_pp", "sequence_by_tp",
                                       "overlap_parameters_needs_shards"])
        self.assertEqual(rules["heads_by_tp"]["values"], "heads 12, tp 8")
        self.assertIn("Megatron-LM", rules["heads_by_tp"]["source"])
        self.assertIn("batch_by_replicas", told["not_asked"])  # how many replicas there are nobody knows
        text = run("explain", "small.yaml", *[word for pair in sets for word in ("--set", pair)],
                   directory=self.directory).stdout
        self.assertIn("small: refused; 6 rules are broken", text)
        self.assertIn("source: Megatron-LM", text)
        one = run("explain", "small.yaml", "--set", "strategy.global_batch=15", directory=self.directory).stdout
        self.assertIn("refused; one rule is broken", one)

    def test_rules_are_listed_with_their_sources(self):
        rules = json.loads(run("list", "rules", "--json", directory=self.directory).stdout)["rules"]
        self.assertGreater(len(rules), 50)
        for rule in rules:
            self.assertTrue(rule["details"]["source"])

    def test_a_sweep_wants_one_experiment_named(self):
        (self.directory / "two.yaml").write_text(SPEC + "axes:\n  strategy.tp: [2, 3]\n  strategy.micro_batch: [1, 2]\n")
        self.assertIn("--experiment 0 … 1", self.say("explain", spec="two.yaml", expect=2).stderr)
        pinned = json.loads(self.say("explain", "strategy.tp=3", "strategy.micro_batch=1", spec="two.yaml").stdout)
        self.assertTrue(pinned["refused"])
        first = run("explain", "two.yaml", "--experiment", 0, directory=self.directory).stdout
        self.assertIn("two: ran" if "two: ran" in first else "small: ran", first)


class ExplainedRuns(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-explained-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def explain(self, *words, expect=0):
        return run("explain", *words, directory=self.directory, expect=expect)

    def test_the_page_on_sweeps_shows_what_its_commands_print(self):
        page = re.search(r"^### Why these are the best\n(.*?)^### ", (ROOT / "docs/sweeps.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
        shown = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        commands = [shlex.split(line.replace("experiments/", f"{ROOT}/experiments/"))[1:]
                    for line in re.findall(r"^    (manyworlds .*)$", page, re.MULTILINE)]
        self.assertEqual((len(commands), len(shown)), (3, 2))
        printed = [run(*command, directory=self.directory).stdout for command in commands]
        for text, output in zip(shown, printed[1:]):
            for line in text.splitlines():
                self.assertIn(line, output.splitlines())
        # The same from the results alone, but for what has to be simulated; and for any number of ranks.
        alone = self.explain("runs/first/results.h5").stdout
        self.assertIn("its bound is " + re.search(r"its analytic step is (.*?),", shown[0]).group(1), alone)
        self.assertNotIn("what binds it", alone)
        run(*commands[0][:-1], "runs/two", "-j", "2", "--store", "none", directory=self.directory)
        first, two = (json.loads(self.explain(name, "--json").stdout) for name in ("runs/first", "runs/two"))
        self.assertEqual({**first, "run": ""}, {**two, "run": ""})
        # What a rung leaves behind the next one does not look at; the gap closes with each experiment that is simulated.
        looked_at, left_behind = ([rung[key] for rung in first["ladder"]] for key in ("looked_at", "left_behind"))
        self.assertEqual(looked_at[1:], [looked - left for looked, left in zip(looked_at, left_behind[:-1])])
        self.assertEqual(len(first["closing"]), looked_at[-1] + 1)
        self.assertLessEqual(first["gap"], 0.01)

    def test_better_hardware_brings_what_running_with_it_says(self):
        (self.directory / "small.yaml").write_text(SPEC)
        told = json.loads(self.explain("small.yaml", "--sensitivity", "--json").stdout)["sensitivity"]
        step = json.loads(run("run", "small.yaml", "--json", directory=self.directory).stdout)
        for figure in told:
            self.assertAlmostEqual(figure["elasticity"], -figure["step_time_change_share"] / (1 - 1 / 1.1), places=9)
        alone = json.loads(run("run", "small.yaml", "--json", "--set", "cluster.nic_gbps=220", directory=self.directory).stdout)
        nics = next(figure for figure in told if figure["figure"] == "NICs")
        self.assertEqual(nics["step_time_s"], alone["step_time_s"])
        self.assertLess(nics["step_time_change_share"], 0)
        self.assertLess(sum(figure["elasticity"] for figure in told), 1.01)
        text = self.explain("small.yaml", "--sensitivity").stdout
        self.assertIn(f"step time         {step['step_time_s']:.6f} s", text)
        self.assertIn("what hardware that is 10 % better would bring (packet)", text)

    def test_a_run_is_explained_as_it_was_and_says_what_it_lacks(self):
        (self.directory / "two.yaml").write_text(SPEC + "axes:\n  strategy.micro_batch: [1, 2]\n")
        run("sweep", "two.yaml", "-o", "two", "--store", "none", directory=self.directory)
        self.assertEqual(self.explain("two", expect=2).stderr,
                         "manyworlds explain: two: nobody asked it for its best (sweep --best K); explain RUN --experiment ID "
                         "explains one of its layouts\n")
        one = self.explain("two", "--experiment", 1).stdout
        self.assertIn("small: ran", one)
        self.assertEqual(one, self.explain("two.yaml", "--experiment", 1).stdout)
        self.assertIn("the sweep's ids go from 0 to 1", self.explain("two", "--experiment", 2, expect=2).stderr)
        self.assertIn("--set: changes a SPEC, and two is a run", self.explain("two", "--set", "strategy.tp=1", expect=2).stderr)
        self.assertIn("a results file has no settings", self.explain("two/results.h5", "--sensitivity", expect=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
