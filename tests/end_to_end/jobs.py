"""`--like`: a job's own file is the experiment that a SPEC of the same settings is, and ranks among the layouts of a search."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

from program import ROOT, run

MODEL = "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --vocab-size 32000"
STYLE = ("--swiglu --ffn-hidden-size 2816 --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
         "--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0")
LAYOUT = ("--tensor-model-parallel-size 2 --sequence-parallel --micro-batch-size 1 --global-batch-size 32 --bf16 "
          "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --tp-comm-overlap")
SCRIPT = f"""#!/bin/bash
#SBATCH --nodes=2
MODEL=({MODEL} {STYLE})
srun torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py "${{MODEL[@]}}" {LAYOUT} "$@"
"""
SPEC = """name: train
base:
  model: {layers: 4, hidden: 1024, heads: 16, kv_heads: 16, sequence: 1024, vocabulary: 32000, ffn_hidden: 2816,
          norm: rms_norm, activation: swiglu, position: rotary, biases: false, tied_embeddings: false, dropout: false}
  cluster: {like: dgx_h100_superpod, nodes: 2, gpus_per_node: 8}
  strategy: {tp: 2, sequence_parallel: true, micro_batch: 1, global_batch: 32, zero: 1, overlap_grad_reduce: true,
             stack: {like: megatron-core, router_fusion: false}}
"""
CONFIG = {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16,
          "num_key_value_heads": 4, "intermediate_size": 2816, "vocab_size": 32000, "rms_norm_eps": 1e-06,
          "rope_theta": 250000.0, "max_position_embeddings": 8192, "tie_word_embeddings": False}
MACHINES = ("--cluster", "dgx_h100_superpod")
ONE_LAYOUT = ("--tp", 2, "--pp", 1, "--cp", 1, "--micro-batch", 1, "--recompute", "none", "--zero", 1)


class Jobs(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-jobs-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "train.sh").write_text(SCRIPT)
        (self.directory / "spec.yaml").write_text(SPEC)

    def program(self, *words, expect=0):
        return run(*words, directory=self.directory, expect=expect)

    def test_the_runs_that_calculon_is_validated_on(self):
        """Its executions and models, beside what Korthikanti et al. 2022 measured (table 5), as the page shows them."""
        page = (ROOT / "docs" / "jobs.md").read_text()
        rows = re.findall(r"^\| (?:GPT-3|Megatron|Turing) (\d+[BT]) \|(.*)\|$", page, re.MULTILINE)
        self.assertEqual(len(rows), 4)
        names = {"22B": "megatron-22B", "175B": "gpt3-175B", "530B": "turing-530B", "1T": "megatron-1T"}
        measured = {"22B": (1.42, 1.10), "175B": (18.13, 13.75), "530B": (49.05, 37.83), "1T": (94.42, 71.49)}
        folder = ROOT / "tests" / "experiments" / "calculon"
        for size, cells in rows:
            shown = [float(cell.split()[0]) for cell in cells.split("|")]
            for kind, steps in (("full", shown[:3]), ("seqsel", shown[3:])):
                job = json.loads(self.program("run", "--like", folder / f"{names[size]}_{kind}.json", "--model",
                                              folder / f"{names[size]}.json", "--gpu", "a100_80", "--json").stdout)
                step, real = job["step_time_s"], measured[size][kind == "seqsel"]
                self.assertEqual(f"{step:.2f}", f"{steps[0]:.2f}", (size, kind))
                self.assertEqual(steps[1], real)
                self.assertAlmostEqual(steps[2], 100 * (step / real - 1), delta=0.051)
                self.assertLess(abs(steps[2]), 8.87)  # Calculon's own largest error

    def test_a_script_is_the_experiment_that_its_settings_are(self):
        mine = json.loads(self.program("run", "--like", "train.sh", *MACHINES, "--json").stdout)
        theirs = json.loads(self.program("run", "spec.yaml", "--json").stdout)
        for name in ("status", "step_time_ps", "memory_peak_bytes", "tokens_per_s_per_gpu"):
            self.assertEqual(mine[name], theirs[name], name)

    def test_what_is_run_says_the_sizes_that_it_was_read_with(self):
        # Per layer four square projections, three of the gated network and two norms; two tables and the last norm.
        parameters = 4 * (4 * 1024 ** 2 + 3 * 1024 * 2816 + 2 * 1024) + 2 * 32000 * 1024 + 1024
        text = self.program("run", "--like", "train.sh", *MACHINES).stdout
        self.assertIn(f"sizes             {parameters / 1e6:.4g} M parameters in 4 layers; 16 GPUs (h100_sxm): tp 2, pp 1, cp 1, "
                      "dp 8; 32 samples of 1024 tokens, 1 a micro-batch\n", text)

    def test_the_only_layout_of_a_search_is_the_jobs_own(self):
        words = (*MACHINES, *ONE_LAYOUT, "-j", 1, "--in-process", "--store", "none", "-o", "found")
        text = self.program("search", "--like", "train.sh", *words).stdout
        self.assertRegex(text, r"train\.sh itself: [0-9.]+ s a step, [0-9.]+ tokens/s/GPU: #1 of these 1; #1 gains 0\.0 %")
        own = json.loads(self.program("run", "--like", "train.sh", *MACHINES, "--json").stdout)
        found = re.search(r"^1 +0 .*? ([0-9.]+) (m?s) ", text, re.MULTILINE)
        seconds = float(found[1]) * (1e-3 if found[2] == "ms" else 1)
        self.assertAlmostEqual(seconds, own["step_time_s"], delta=1e-3 * seconds)

    def test_what_is_emitted_is_the_same_experiment_wherever_it_comes_from(self):
        own = json.loads(self.program("run", "--like", "train.sh", *MACHINES, "--json").stdout)
        for target in ("megatron", "bridge"):
            self.program("run", "--like", "train.sh", *MACHINES, "--emit", target, "--emit-to", f"{target}.sh")
            again = json.loads(self.program("run", "--like", f"{target}.sh", *MACHINES, "--json").stdout)
            for name in ("step_time_ps", "memory_peak_bytes"):
                self.assertEqual(again[name], own[name], (target, name))
        self.assertNotIn("# was", (self.directory / "megatron.sh").read_text())
        words = (*MACHINES, *ONE_LAYOUT[2:], "--tp", 4, "-j", 1, "--in-process", "--store", "none", "-o", "found")
        printed = self.program("search", "--like", "train.sh", *words, "--emit", "megatron").stdout
        script = printed[printed.index("#!/bin/bash"):]
        self.assertIn("  --tensor-model-parallel-size 4  # was 2 in train.sh:4: strategy.tp is 4\n", script)
        self.assertRegex(script.splitlines()[1], r"^# .*: the fastest of 1 layouts that fit, [0-9.]+ s a step")
        top = self.program("top", "found", "--emit", "megatron", "--like", "train.sh", "--experiment", 0).stdout
        bare = [[line for line in one.splitlines() if not line.startswith("#")] for one in (script, top[top.index("#!"):])]
        self.assertEqual(*bare)
        (self.directory / "winner.sh").write_text(script)
        winner = json.loads(self.program("run", "--like", "winner.sh", *MACHINES, "--json").stdout)
        found = json.loads(self.program("top", "found", "--json").stdout)
        self.assertEqual(winner["step_time_s"], found["rows"][0]["columns"]["step_time_s"])

    def test_a_target_without_a_stack_is_searched_with_its_own_software(self):
        (self.directory / "config.json").write_text(json.dumps(CONFIG))
        for target, name, zero in (("torchtitan", "own.toml", 3), ("deepspeed", "own.sh", 1), ("nemo", "own.yaml", 1)):
            layout = ("--tp", 2, "--pp", 1, "--cp", 1, "--micro-batch", 1, "--recompute", "none", "--zero", zero)
            words = ("--model", "config.json", "--sequence", 1024, *MACHINES, "--gpus", 16, "--global-batch", 32, *layout,
                     "-j", 1, "--in-process", "--store", "none", "-o", target)
            done = self.program("search", *words, "--emit", target, "--emit-to", name)
            self.assertIn(f" (what --emit {target} is launched with; --stack NAME)", done.stdout)
            text = (self.directory / name).read_text()
            self.assertNotIn("# the step time is that of", text)
            told = re.search(r"^# .*: the fastest of 1 layouts that fit, ([0-9.]+) s a step, ", text, re.MULTILINE)
            again = json.loads(self.program("run", "--like", name, *MACHINES, "--gpus", 16, "--json").stdout)
            self.assertEqual(f"{again['step_time_s']:.4g}", told[1], target)
        self.assertIn('# llama3_args["', (self.directory / "own.toml").read_text())
        self.assertIn("rope_theta=250000,", (self.directory / "own.toml").read_text())
        self.program("run", "--like", "own.toml", *MACHINES, "--gpus", 16, "--memory", "--emit", "megatron", "--emit-to", "m.sh")
        script = (self.directory / "m.sh").read_text()
        self.assertIn("the step time is that of the stack torchtitan; this file is one of the stack megatron-core", script)
        self.assertIn("  --rotary-base 250000\n", script)
        self.assertIn("  --norm-epsilon 1e-06\n", script)

    def test_a_spec_without_a_stack_is_run_with_the_software_of_the_target(self):
        (self.directory / "bare.yaml").write_text(
            "name: bare\nbase:\n  model: {layers: 4, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 32000}\n"
            "  cluster: {like: dgx_h100_superpod, nodes: 2, gpus_per_node: 8}\n  strategy: {global_batch: 32}\n")
        done = self.program("run", "bare.yaml", "--json", "--emit", "torchtitan", "--emit-to", "bare.toml")
        self.assertIn("assumed: the stack torchtitan, which is what --emit torchtitan is launched with", done.stderr)
        again = self.program("run", "--like", "bare.toml", *MACHINES, "--gpus", 16, "--json")
        self.assertEqual(json.loads(again.stdout)["step_time_ps"], json.loads(done.stdout)["step_time_ps"])

    def test_what_cannot_be_emitted_is_told(self):
        for words, message in (
                (("--emit", "nosuch"), "--emit: 'nosuch' is no target; known are megatron, bridge"),
                (("--emit-to", "x.sh"), "--emit-to: belongs to --emit TARGET"),
                (("--emit", "megatron", "--json"), "--emit: is no JSON; give --emit-to FILE")):
            self.assertIn(message, self.program("run", "spec.yaml", *words, expect=2).stderr)
        text = self.program("run", "spec.yaml", "--memory", "--emit", "megatron", "--set",
                            "strategy.stack.tensor_chunks=8").stdout
        self.assertIn("\n# not expressed:\n#   strategy.stack.tensor_chunks 8: such a job has 0\n", text)

    def test_what_is_refused_names_its_line(self):
        (self.directory / "train.sh").write_text(SCRIPT.replace("MODEL=(", "MODEL=(--hierarchical-context-parallel-sizes 2 4 "))
        message = self.program("run", "--like", "train.sh", *MACHINES, expect=2).stderr
        self.assertIn("train.sh:3: --hierarchical-context-parallel-sizes 2: the exchange of context-parallel ranks in two "
                      "levels is not modelled", message)
        message = self.program("run", "spec.yaml", "--gpus", 8, expect=2).stderr
        self.assertIn("--gpus: belongs to --like FILE", message)


if __name__ == "__main__":
    unittest.main()
