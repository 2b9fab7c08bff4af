"""Searches of spaces by moves: the best found and how far it is from what is proven, whatever interrupts them."""

import json
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

from program import PATIENCE_S, PROGRAM, ROOT, SWEEPS, environment_in, kill_all, run
from spaces import STAGES

# Two kinds of GPU that hold few layers: which ranks have the odd ones matters, and their sums are alike.
MIXED = """
name: mixed
base:
  model: {like: gpt3-2.7b, layers: 13}
  cluster: {like: dgx_h100_superpod, nodes: 1, gpu: {like: h100_sxm, memory_gib: 10}, second: {nodes: 1, gpu: a100_40, nic_gbps: 200}}
  topology: {fat_tree: {oversubscription: 2}}
  strategy: {global_batch: 32, zero: 1, stack: megatron-core}
axes:
  strategy.pp: [2, 4, 8]
  strategy.micro_batch: [1, 2]
  strategy.stage_layers: any
  strategy.stage_recompute_layers: any
  strategy.recompute: [none, selective, full]
  strategy.bucket_parameters: [5000000, 20000000, 80000000]
zip:
  - {strategy.schedule: [1f1b, interleaved, zb_h1, zb_v], strategy.virtual_stages: [1, 2, 1, 2]}
"""
WORDS = ("mixed.yaml", "--moves", "384")


class Moves(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-moves-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "any.yaml").write_text(STAGES)
        (self.directory / "mixed.yaml").write_text(MIXED)

    def search(self, *words, **more):
        return run("search", *words, directory=self.directory, **more)

    def test_moves_go_on_where_the_proof_ends_whatever_interrupts_them(self):
        done = self.search(*WORDS, "-o", "run", "-j", "2")
        self.assertRegex(done.stderr, r"something else may be better than the last of them by [\d.]+ % at most")
        self.assertRegex(done.stderr, r"moves: \d+ of 384 drawn; simulating \d+ neighbours")
        told = json.loads(self.search(*WORDS, "-o", "run", "--json").stdout)
        moves = told["moves"]
        self.assertEqual(moves["drawn"], 384)
        self.assertEqual(sum(moves[name] for name in ("met", "excluded", "out_of_memory", "behind_sums", "behind_analytic", "simulated")), 384)
        self.assertGreater(moves["behind_sums"] + moves["behind_analytic"], 2 * moves["simulated"])
        self.assertEqual(told["ended"], "moves")
        # The best is better than before the moves, no better than the bound, and in the run that is named.
        before, best = (told[name]["tokens_per_s_per_gpu"] for name in ("before", "best"))
        self.assertGreater(best, before)
        self.assertLess(best, told["bound"])
        self.assertAlmostEqual(told["best"]["gap"], told["bound"] / best - 1)
        self.assertAlmostEqual(told["gain"], best / before - 1)
        first = json.loads(run("top", told["best"]["run"], "-k", "1", "--json", directory=self.directory).stdout)["rows"][0]
        self.assertEqual(first["columns"]["tokens_per_s_per_gpu"], best)
        # The line below the answer simulates the best, as a run and as a sweep.
        line = shlex.split(done.stdout.splitlines()[-1])
        self.assertEqual(line[:3], ["manyworlds", "run", "mixed.yaml"])
        alone = json.loads(run(*line[1:], "--json", directory=self.directory).stdout)
        self.assertAlmostEqual(alone["tokens_per_s_per_gpu"], best, delta=1e-9 * best)
        run("sweep", *line[2:], "-o", "alone", directory=self.directory)
        swept = json.loads(run("top", "alone", "--json", directory=self.directory).stdout)["rows"]
        self.assertEqual([row["columns"]["tokens_per_s_per_gpu"] for row in swept], [best])
        # Other ranks, no sharing, and an interruption in the midst of rounds change nothing.
        mark = uuid.uuid4().hex
        self.addCleanup(kill_all, mark)
        killed = subprocess.Popen([PROGRAM, "search", *WORDS, "-o", "killed", "-j", "2"], cwd=self.directory,
                                  env=environment_in(self.directory, mark), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + PATIENCE_S
        while killed.poll() is None and not list(self.directory.glob("killed.search/moves-2-*/journal/*")) and time.time() < deadline:
            time.sleep(0.01)
        kill_all(mark)
        killed.wait()
        answers = [done.stdout, self.search(*WORDS, "-o", "killed", "-j", "2").stdout,
                   self.search(*WORDS, "-o", "apart", "-j", "1", "--no-sharing").stdout]
        self.assertEqual(len({text.replace("killed", "run").replace("apart", "run") for text in answers}), 1, answers)

    def test_a_stop_on_request_tells_what_was_found_and_the_same_line_goes_on(self):
        words = ("any.yaml", "--moves", "100000", "--threshold", "10%", "-o", "run", "-j", "1")
        mark = uuid.uuid4().hex
        self.addCleanup(kill_all, mark)
        stopped = subprocess.Popen([PROGRAM, "search", *words], cwd=self.directory, env=environment_in(self.directory, mark),
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        deadline = time.time() + PATIENCE_S
        while stopped.poll() is None and not list(self.directory.glob("run.search/moves-1-*/journal/*")) and time.time() < deadline:
            time.sleep(0.01)
        stopped.send_signal(signal.SIGINT)
        told = stopped.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(stopped.returncode, 75)
        self.assertRegex(told, r"not proven: another may be better by [\d.]+ % at most; stopped on request, and the same line goes on with it\n")
        self.assertRegex(told.splitlines()[-1], r"^manyworlds run any.yaml --set ")

    def test_the_line_of_the_docs_runs_in_a_part_of_its_space(self):
        line, = re.findall(r"^    manyworlds (search experiments/\S+.*)$", (ROOT / "docs/searches.md").read_text(), re.MULTILINE)
        words = shlex.split(line)
        words[1] = ROOT / words[1]
        part = ("model={like: llama3-405b, layers: 8}", "cluster.nodes=4", "strategy.global_batch=64", "strategy.pp=4", "strategy.cp=1",
                "strategy.micro_batch=1", "strategy.recompute=full", "strategy.bucket_parameters=160000000",
                "strategy.stack.reduce_in_16bit=true")
        told = json.loads(self.search(*words[1:], *(word for one in part for word in ("--set", one)), "--json", "-o", "run").stdout)
        self.assertTrue(told["proven"] or told["moves"]["drawn"] == 512)
        self.assertLessEqual(told["before"]["tokens_per_s_per_gpu"], told["best"]["tokens_per_s_per_gpu"])

    def test_nothing_moves_where_the_sweep_proves_enough(self):
        told = self.search(SWEEPS / "tiny.yaml", "--json", "-o", "tiny")
        answer = json.loads(told.stdout)
        self.assertEqual((answer["ended"], answer["moves"]["drawn"], answer["best"]["gap"]), ("proven", 0, 0))
        self.assertEqual(answer["best"]["run_arguments"][:2], ["--experiment", str(answer["best"]["experiment"])])
        answer = json.loads(self.search("any.yaml", "--gap", "20%", "--json", "-o", "any").stdout)
        self.assertEqual((answer["ended"], answer["moves"]["drawn"]), ("proven", 0))
        self.assertLess(0, answer["best"]["gap"])
        answer = json.loads(self.search("any.yaml", "--moves", "0", "--json", "-o", "none").stdout)
        self.assertEqual((answer["ended"], answer["proven"], answer["gain"]), ("moves", False, 0))

    def test_what_does_not_belong_to_such_a_search_is_refused(self):
        def refused(*words):
            return self.search(*words, expect=2).stderr
        for words in (("--model", "llama3-8b"), ("--gpus", "8"), ("--packet", "3"), ("--budget", "60s"), ("--tp", "2"), ("-k", "2"), ("--like", "x")):
            name = words[0] if words[0] != "-k" else "--k"
            self.assertEqual(refused("any.yaml", *words), f"manyworlds search: {name}: is for a search of a model's layouts, and SPEC.yaml has "
                             "a space of its own: leave one of them out\n")
        for words in (("--moves", "3"), ("--gap", "2%"), ("--best", "1"), ("--threshold", "1%")):
            self.assertEqual(refused("--model", "llama3-8b", "--gpu", "h100", *words),
                             f"manyworlds search: {words[0]}: is for a search of the space of a document: add SPEC.yaml, or leave it out\n")
        self.assertIn("--moves", refused("any.yaml", "--moves", "-1"))
        self.assertIn("--gap: is a share of the objective", refused("any.yaml", "--gap", "200%"))
        self.assertIn("--threshold: is a share", refused("any.yaml", "--threshold", "x"))
        self.assertIn("--best: is at least 1", refused("any.yaml", "--best", "0"))
        self.assertIn("add --set sample=none", refused("any.yaml", "--set", "sample.experiments=3"))
        (self.directory / "front.yaml").write_text(STAGES + "front: memory_peak_bytes\n")
        self.assertIn("asks for a front, and a search finds the best by one objective: leave 'front' out", refused("front.yaml"))
        (self.directory / "memory.yaml").write_text(STAGES.replace("best: 1\n", "objective: memory_peak_bytes\n"))
        self.assertIn("objective: no lower bound proves the best by memory_peak_bytes", refused("memory.yaml"))


if __name__ == "__main__":
    unittest.main()
