"""Sweeps through the whole program: one answer on any number of ranks and from a store; read by pandas."""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import h5py
import pandas

from program import SWEEPS, answer_digest, provenance, run


def ring_of_msccl(gpus):
    """An all-reduce in place as XML: chunk c begins at GPU c, is added up along the ring, and its sum goes round."""
    text = f'<algo name="ring" proto="Simple" nchannels="1" nchunksperloop="{gpus}" ngpus="{gpus}" coll="allreduce" inplace="1">\n'
    for gpu in range(gpus):
        text += f'<gpu id="{gpu}" i_chunks="{gpus}" o_chunks="0" s_chunks="0">\n'
        text += f'<tb id="0" send="{(gpu + 1) % gpus}" recv="{(gpu - 1) % gpus}" chan="0">\n'
        for step, kind in enumerate(["s"] + (gpus - 2) * ["rrs"] + ["rrcs"] + (gpus - 2) * ["rcs"] + ["r"]):
            chunk = (gpu - step) % gpus
            text += (f'<step s="{step}" type="{kind}" srcbuf="i" srcoff="{chunk}" dstbuf="i" dstoff="{chunk}" cnt="1" '
                     'depid="-1" deps="-1" hasdep="0"/>\n')
        text += "</tb>\n</gpu>\n"
    return text + "</algo>\n"


class Sweeps(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-sweep-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def sweep(self, *words, **more):
        return run("sweep", *words, directory=self.directory, **more)

    def assert_same(self, *runs):
        first = self.directory / runs[0] / "results.h5"
        for other in runs[1:]:
            self.assertEqual(run("diff", runs[0], other, directory=self.directory).stdout, "same results\n")
            self.assertEqual(answer_digest(first), answer_digest(self.directory / other / "results.h5"), other)

    def assert_told_as_in_results(self, name):
        """What status.json says of the experiments of a run that is over, against what results.h5 has."""
        status = json.loads((self.directory / name / "status.json").read_text())
        top = json.loads(run("top", name, "--by", status["ranking"]["by"], "--json", directory=self.directory).stdout)
        self.assertEqual(status["ranking"]["ranked"], top["candidates"])
        self.assertEqual(len(status["ranking"]["rows"]), len(top["rows"]))
        for told, row in zip(status["ranking"]["rows"], top["rows"]):
            expected = {**row["columns"], **row}
            self.assertEqual(told, {key: expected[key] for key in told})
        with h5py.File(self.directory / name / "results.h5") as results:
            became = [text.decode() for text in results["experiments/status"][:]]
        for what in ("ran", "out_of_memory", "too_large", "failed", "pending"):
            self.assertEqual(status["experiments"][what], became.count(what), what)

    def test_one_answer_on_any_number_of_ranks_with_and_without_sharing(self):
        tiny = SWEEPS / "tiny.yaml"
        variants = {"one": ["-j", 1], "two": ["-j", 2], "four": ["-j", 4], "inside": ["-j", 2, "--in-process"],
                    "alone": ["-j", 2, "--no-sharing"]}
        for name, words in variants.items():
            done = self.sweep(tiny, "-o", name, "--store", "none", *words)
            self.assertIn("20 experiments: 20 ran, and 4 combinations left out\n  4 by ", done.stderr)
            self.assertIn("tokens/s/GPU", done.stdout)
            self.assertEqual(provenance(self.directory / name / "results.h5")["ranks"], words[1])
            self.assert_told_as_in_results(name)
        self.assert_same(*variants)
        shared, alone = (provenance(self.directory / name / "results.h5") for name in ("two", "alone"))
        self.assertEqual(shared["link_hops_transferred"], alone["link_hops_transferred"])
        self.assertLess(shared["link_hops_simulated"], alone["link_hops_simulated"])
        # Nor do ranks and sharing matter where the streams' clock ticks.
        for name, words in {"tick": ["-j", 1], "tick3": ["-j", 3], "tick_alone": ["-j", 1, "--no-sharing"]}.items():
            self.sweep(tiny, "-o", name, "--store", "none", "--set", "tick_ns=200", *words)
        self.assert_same("tick", "tick3", "tick_alone")
        run("diff", "one", "tick", directory=self.directory, expect=1)
        # The digest is no constant: another sweep has another answer.
        self.sweep(tiny, "-o", "other", "--store", "none", "-j", 1, "--set", "strategy.global_batch=32")
        run("diff", "one", "other", directory=self.directory, expect=1)
        self.assertNotEqual(answer_digest(self.directory / "one" / "results.h5"),
                            answer_digest(self.directory / "other" / "results.h5"))

    def test_tables_of_a_tuner_share_what_they_choose_alike_and_are_told(self):
        """Lines of the column are those of each file, though two files choose the same."""
        table = ("allreduce,65537,4294967295,ring,simple,-1,-1,-1\nallreduce,0,4294967295,ring,ll,-1,-1,-1\n"
                 "reduce,0,1,tree,ll,-1,-1,-1\n")
        (self.directory / "a.conf").write_text(table)
        (self.directory / "b.conf").write_text("# the same\n" + table)
        (self.directory / "c.conf").write_text(table.replace("simple", "ll"))
        (self.directory / "s.yaml").write_text(
            "name: tuned\nbase:\n  model: {layers: 4, hidden: 512, heads: 8, vocabulary: 2048, sequence: 128}\n"
            "  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 4, nic_gbps: 400}\n"
            "  topology: {rail_optimized: {oversubscription: 1}}\n  fidelity: analytic\n"
            "  strategy: {micro_batch: 1, global_batch: 8, tp: 2, zero: 0, sequence_parallel: false}\n"
            "axes:\n  collectives.tuner_file: [a.conf, b.conf, c.conf]\n")
        done = self.sweep("s.yaml", "-o", "tuned", "--store", "none", "-j", 1)
        self.assertIn("tasks: 2 computed", done.stderr)
        self.assertIn("its line 4 never matches (NCCL has trees for allreduce alone)", done.stdout)
        with h5py.File(self.directory / "tuned" / "results.h5") as results:
            lines = [text.decode() for text in results["experiments/collectives_tuner"][:]]
        self.assertRegex(lines[0], r"^line 1: \d+ all_reduce")
        self.assertEqual(lines[1], lines[0].replace("line 2", "line 3").replace("line 1", "line 2"))
        self.assertEqual(lines[2], lines[0])
        (self.directory / "c.conf").write_text(table + "allreduce,0,9,pat,simple,-1,-1,-1\n")
        error = self.sweep("s.yaml", "-o", "other", expect=2).stderr
        self.assertRegex(error, r"c\.conf:4: algorithm pat of NCCL is not modelled")

    def test_algorithms_of_msccl_give_one_answer_and_share_what_they_do_alike(self):
        """As an axis: none, a ring, the same ring in another file, and one that is for other members alone."""
        gpus = 4
        for name, members in (("a.xml", gpus), ("b.xml", gpus), ("other.xml", 3)):
            (self.directory / name).write_text(ring_of_msccl(members))
        (self.directory / "s.yaml").write_text(
            "name: own\nbase:\n  model: {layers: 4, hidden: 512, heads: 8, vocabulary: 2048, sequence: 128}\n"
            f"  cluster: {{gpu: h100_sxm, nodes: 2, gpus_per_node: {gpus}, nic_gbps: 400}}\n"
            "  topology: {rail_optimized: {oversubscription: 1}}\n"
            f"  strategy: {{micro_batch: 1, global_batch: 8, tp: {gpus}, zero: 0, sequence_parallel: false}}\n"
            "axes:\n  collectives.msccl_files: ['', a.xml, b.xml, 'other.xml:a.xml', other.xml]\n")
        for name, words in {"one": ["-j", 1], "three": ["-j", 3], "alone": ["-j", 1, "--no-sharing"]}.items():
            done = self.sweep("s.yaml", "-o", name, "--store", "none", *words)
            self.assertIn(f"a.xml is for all_reduce of {gpus} members", done.stdout)
            if name == "one":  # of five steps two are distinct
                collectives, tasks = (int(re.search(words, done.stderr).group(1))
                                      for words in (r"(\d+) collectives", r"tasks: (\d+) computed"))
                self.assertEqual(tasks - collectives, 2)
        self.assert_same("one", "three", "alone")
        with h5py.File(self.directory / "one" / "results.h5") as results:
            told = [text.decode() for text in results["experiments/collectives_tuner"][:]]
            times = results["experiments/step_time_s"][:]
        self.assertEqual(times[1], times[2])
        self.assertEqual(times[1], times[3])
        self.assertEqual(times[0], times[4])
        self.assertRegex(told[1], r"^a\.xml: \d+ all_reduce; the library: ")
        self.assertEqual(told[2], told[1].replace("a.xml", "b.xml"))
        self.assertEqual(told[3], told[1])
        self.assertRegex(told[4], r"^the library: ")
        (self.directory / "b.xml").write_text(ring_of_msccl(gpus).replace('"rrs"', '"rcs"', 1))
        self.assertRegex(self.sweep("s.yaml", "-o", "wrong", expect=2).stderr, r"b\.xml:\d+: gpu \d+, tb 0, step \d")

    def test_one_answer_where_experts_get_unequal_loads_also_from_a_measured_table(self):
        batched = SWEEPS / "batched_experts.yaml"
        table = "layer,expert,tokens\n" + "".join(f"{layer},{expert},{100 + (37 * expert + 11 * layer) % 97}\n"
                                                  for layer in range(4) for expert in range(128))
        (self.directory / "loads.csv").write_text(table)
        measured = ["--set", f"routing={{measured: {{file: {self.directory}/loads.csv}}}}"]
        for of, words in {"zipf": ["--set", "routing={zipf: {exponent: 0.4}}"], "measured": measured}.items():
            variants = {"one": ["-j", 1], "three": ["-j", 3], "alone": ["-j", 2, "--no-sharing"]}
            for name, ranks in variants.items():
                self.sweep(batched, "-o", f"{of}-{name}", "--store", "none", *ranks, *words)
            self.assert_same(*(f"{of}-{name}" for name in variants))
        run("diff", "zipf-one", "measured-one", directory=self.directory, expect=1)
        with h5py.File(self.directory / "measured-one" / "results.h5") as results:
            figures = {name: results[f"experiments/{name}"][:] for name in ("expert_imbalance", "expert_drop_rate",
                                                                           "strategy.capacity_factor")}
        for imbalance, dropped, factor in zip(*figures.values()):
            self.assertGreaterEqual(imbalance, 1)
            self.assertEqual(dropped > 0, factor > 0)  # the hottest expert gets more than 1.25 times the mean

    def test_one_answer_where_cables_fail_on_the_way(self):
        (self.directory / "failing.yaml").write_text("""
name: failing
base:
  model: {layers: 2, hidden: 512, heads: 8, vocabulary: 2048, sequence: 128}
  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 2, nic_gbps: 100}
  topology: {fat_tree: {leaf_hosts: 2, spines: 2}}
  strategy: {tp: 2, micro_batch: 1, global_batch: 4}
  transport: {static_window: {routing: ecmp_hash}}
  composition: coupled
  faults: {reconverge_us: 100}
axes:
  faults.fails: ["", "leaf0-spine0@200us", "leaf0-spine1@200us", "leaf0-spine0@100us, leaf1-spine0@900ms"]
  transport.routing: [ecmp_hash, spray, adaptive]
""")
        variants = {"one": ["-j", 1], "two": ["-j", 2], "alone": ["-j", 2, "--no-sharing"]}
        for name, words in variants.items():
            self.sweep("failing.yaml", "-o", name, "--store", "none", *words)
        self.assert_same(*variants)
        with h5py.File(self.directory / "one" / "results.h5") as file:
            table = {name: file["experiments"][name][:] for name in ("faults.fails", "packets_lost", "step_time_s")}
        whole = table["faults.fails"] == b""
        self.assertTrue((table["packets_lost"][whole] == 0).all())
        self.assertTrue((table["packets_lost"][~whole] > 0).any())
        (self.directory / "one.yaml").write_text((self.directory / "failing.yaml").read_text().split("axes:")[0])
        last = ["run", "one.yaml", "--set", "faults.fails=leaf0-spine0@100us, leaf1-spine0@900ms"]
        told = run(*last, directory=self.directory).stdout
        self.assertIn("leaf1-spine0 at 900 ms, after the end of the step: without effect", told)
        answer = json.loads(run(*last, "--json", directory=self.directory).stdout)
        self.assertEqual([one["before_the_end"] for one in answer["failed_cables"]], [True, False])
        self.assertNotIn("packets_lost", run("run", "one.yaml", "--json", directory=self.directory).stdout)
        composed = run(*last, "--set", "composition=composed", directory=self.directory, expect=2).stderr
        self.assertIn("composition coupled", composed)

    def test_a_second_run_with_the_same_store_simulates_nothing_and_the_same_line_again_neither(self):
        tiny = SWEEPS / "tiny.yaml"
        self.sweep(tiny, "-o", "first", "-j", 2, "--store", "store")
        self.sweep(tiny, "-o", "second", "-j", 1, "--store", "store")
        first, second = (provenance(self.directory / name / "results.h5") for name in ("first", "second"))
        self.assertEqual(first["tasks_from_store"], 0)
        self.assertGreater(first["link_hops_simulated"], 0)
        self.assertEqual(second["tasks_computed"], 0)
        self.assertEqual(second["tasks_from_store"], first["tasks_computed"])
        self.assertEqual(second["link_hops_simulated"], 0)
        self.sweep(tiny, "-o", "second", "-j", 1, "--store", "none")
        again = provenance(self.directory / "second" / "results.h5")
        self.assertEqual((again["tasks_computed"], again["tasks_from_journal"]), (0, first["tasks_computed"]))
        self.assert_same("first", "second")

    def test_pandas_reads_the_results_in_one_line(self):
        self.sweep(SWEEPS / "tiny.yaml", "-o", "run", "-j", 1, "--store", "none")
        f = h5py.File(self.directory / "run" / "results.h5")
        frame = pandas.DataFrame({k: f["experiments"][k][:] for k in f["experiments"]})
        self.assertEqual(len(frame), 20)
        self.assertEqual(list(frame["id"]), list(range(20)))
        self.assertTrue((frame["status"] == b"ran").all())
        self.assertTrue((frame["gpus"] == 8).all())
        self.assertTrue((frame["dp"] * frame["strategy.tp"] * frame["strategy.pp"] == 8).all())
        tokens = 16 * 256 / frame["step_time_s"] / 8  # global batch x sequence, over time and GPUs
        self.assertLess((frame["tokens_per_s_per_gpu"] / tokens - 1).abs().max(), 1e-12)
        self.assertEqual(f["spec"][()].decode(), (SWEEPS / "tiny.yaml").read_text())
        for column in f["experiments"].values():
            self.assertTrue(column.attrs["description"])

    def test_dry_run_counts_and_runs_nothing(self):
        done = json.loads(self.sweep(SWEEPS / "tiny.yaml", "--dry-run", "--json").stdout)
        self.assertEqual((done["experiments"], done["out_of_memory"]), (20, 0))
        self.assertEqual(done["excluded"]["where"]["count"], 4)
        self.assertEqual(done["keys"]["steps"], {"unique": 20, "naive": 20})
        self.assertIn("while running", done["keys"]["episodes"])
        self.assertEqual(done["first"]["model"]["layers"], 4)
        text = self.sweep(SWEEPS / "tiny.yaml", "--dry-run").stdout
        self.assertIn("work known so far", text)
        self.assertRegex(text, r"\nid +strategy\.\S+.*\n0 ")
        self.assertNotIn("{", text.split("left out:")[0])
        self.assertEqual(os.listdir(self.directory), [])

    def test_an_estimate_simulates_steps_and_keeps_nothing(self):
        done = json.loads(self.sweep(SWEEPS / "tiny.yaml", "--dry-run", "--estimate", "1m", "--json").stdout)["pilot"]
        self.assertEqual((done["steps"], done["is_cut"], done["cpu_s"]["standard_error"]), (20, False, 0))  # all of them
        self.assertGreater(done["cpu_s"]["total"], 0)
        self.sweep(SWEEPS / "tiny.yaml", "-o", "whole", "--store", "none")
        with h5py.File(self.directory / "whole/results.h5") as f:
            self.assertEqual(done["link_hops"]["total"], f["provenance"].attrs["link_hops_transferred"])
        shutil.rmtree(self.directory / "whole")
        text = self.sweep(SWEEPS / "tiny.yaml", "--dry-run", "--estimate", "1m").stdout
        self.assertRegex(text, r"simulated for this estimate: 20 of 20 steps\n  [\d.]+s of CPU if steps shared nothing")
        refused = self.sweep(SWEEPS / "tiny.yaml", "--estimate", "1m", expect=2)
        self.assertEqual(refused.stderr, "manyworlds sweep: --estimate: is for a sweep that does not run: add --dry-run\n")
        self.assertEqual(os.listdir(self.directory), [])

    def test_the_best_of_a_sweep_are_those_of_all_of_it_for_any_ranks_and_interruption(self):
        tiny = SWEEPS / "tiny.yaml"
        self.sweep(tiny, "-o", "whole", "--store", "none")
        def of_rows(rows):
            return [(row["columns"]["id"], row["columns"]["step_time_s"]) for row in rows]
        whole = json.loads(run("top", "whole", "-k", "3", "--json", directory=self.directory).stdout)["rows"]
        for name, words in [("one", ["-j", "1"]), ("three", ["-j", "3", "--in-process"]), ("apart", ["--no-sharing"])]:
            told = self.sweep(tiny, "--best", "3", "-o", name, "--store", "none", *words)
            ran = re.search(r"the best 3 are proven: (\d+) were simulated, and the lower bounds of (\d+) others", told.stderr)
            self.assertIsNotNone(ran, told.stderr)
            self.assertEqual(int(ran[1]) + int(ran[2]), 20)
            self.assertLess(int(ran[1]), 10)
            best = json.loads(run("top", name, "-k", "3", "--json", directory=self.directory).stdout)["rows"]
            self.assertEqual(of_rows(best), of_rows(whole))
        self.assert_same("one", "three", "apart")
        (self.directory / "mine.yaml").write_text(tiny.read_text() + "best: 3\n")
        self.sweep("mine.yaml", "-o", "written", "--store", "none")
        with h5py.File(self.directory / "one/results.h5") as one, h5py.File(self.directory / "written/results.h5") as other:
            for column in one["experiments"]:
                self.assertEqual(one["experiments"][column][:].tobytes(), other["experiments"][column][:].tobytes(), column)
        with h5py.File(self.directory / "one/results.h5") as f:
            bounded = f["experiments/status"][:] == b"bounded"
            self.assertTrue((f["experiments/step_time_bound_s"][:] > 0).all())
            worst = sorted(f["experiments/step_time_s"][:][~bounded])
            self.assertLess(worst[0], worst[-1])

    def test_the_best_go_on_from_any_record_of_their_journal(self):
        # Experiments that differ only in name are one task's result: one of them in the journal tells the others'.
        (self.directory / "twice.yaml").write_text(re.sub(r"(?m)^axes:$", "axes:\n  transport.seed: [1, 2]", (SWEEPS / "tiny.yaml").read_text()))
        self.sweep("twice.yaml", "--best", "12", "-o", "whole", "--store", "none", "-j", "2")
        whole = next((self.directory / "whole/journal").iterdir())
        for part in range(1, 8):
            shutil.copytree(self.directory / "whole", self.directory / f"cut{part}")
            for name in ("results.h5", "complete.json", "status.json"):
                (self.directory / f"cut{part}" / name).unlink()
            os.truncate(self.directory / f"cut{part}/journal" / whole.name, whole.stat().st_size * part // 8)
            run("resume", f"cut{part}", "--store", "none", "-j", "1", directory=self.directory)
        self.assert_same("whole", *(f"cut{part}" for part in range(1, 8)))

    def test_the_best_are_refused_where_nothing_proves_them(self):
        tiny = SWEEPS / "tiny.yaml"
        for words, reason in [(["--best", "0"], "--best: is at least 1"),
                              (["--best", "3", "--shard", "1/2"], "--shard: the best of a sweep are proven by all of it: run it in "
                               "one part, on as many ranks"),
                              (["--best", "x"], "")]:
            refused = self.sweep(tiny, *words, expect=2).stderr
            self.assertEqual(len(refused.splitlines()), 1)
            self.assertIn(reason, refused)
        (self.directory / "mine.yaml").write_text(tiny.read_text().replace("objective: tokens_per_s_per_gpu",
                                                                           "objective: memory_peak_bytes") + "best: 3\n")
        self.assertIn("no lower bound proves the best by memory_peak_bytes; rank by tokens_per_s_per_gpu",
                      self.sweep("mine.yaml", expect=2).stderr)

    def test_the_published_175b_step_is_predicted_beside_its_measurement(self):
        done = run("run", SWEEPS / "korthikanti-175b.yaml", directory=self.directory).stdout
        self.assertRegex(done, r"predicted [\d.]+ s, measured 13\.750 s: [+-][\d.]+ % \(Korthikanti et al\. 2022")
        figures = json.loads(run("run", SWEEPS / "korthikanti-175b.yaml", "--json", directory=self.directory).stdout)
        error = 100 * (figures["step_time_s"] / 13.75 - 1)
        self.assertAlmostEqual(figures["measured"]["error_percent"], error, places=9)
        self.assertLess(abs(error), 50)  # of the right size; its accuracy is told, not tested
        parts = sum(value for name, value in figures.items() if name.endswith("_s") and not name.startswith("step_time_"))
        self.assertAlmostEqual(parts, figures["step_time_s"], places=6)
        self.assertEqual(os.listdir(self.directory), [])

    def test_run_tells_what_every_pipeline_rank_needs_of_memory(self):
        spec = SWEEPS / "korthikanti-175b.yaml"
        told = json.loads(run("run", spec, "--memory", "--json", directory=self.directory).stdout)
        self.assertEqual(len(told["stages"]), 8)
        outside = ("rounding_bytes", "communicators_bytes", "context_bytes")
        for stage in told["stages"]:
            total, allocated, reserved = (stage.pop(f"{what}_bytes") for what in ("total", "allocated", "reserved"))
            self.assertEqual(sum(stage.values()), total)
            self.assertEqual(allocated + stage["rounding_bytes"], reserved)
            self.assertEqual(total - sum(stage[part] for part in outside), allocated)
        # Earlier ranks keep more micro-batches; those in the middle hold equal layers.
        kept = [stage["activations_bytes"] for stage in told["stages"]]
        self.assertEqual(kept, sorted(kept, reverse=True))
        self.assertEqual(len({stage["weights_bytes"] for stage in told["stages"][1:-1]}), 1)
        figures = json.loads(run("run", spec, "--json", directory=self.directory).stdout)
        most = max(told["stages"], key=lambda stage: sum(stage.values()))
        self.assertEqual(figures["memory_peak_bytes"], sum(most.values()))
        text = run("run", spec, "--memory", directory=self.directory).stdout
        self.assertRegex(text, r"(?m)^activations +([\d.]+ +){7}[\d.]+$")

    def test_run_takes_one_experiment_of_a_sweep_and_coupled_agrees(self):
        self.sweep(SWEEPS / "tiny.yaml", "-o", "run", "-j", 1, "--store", "none")
        with h5py.File(self.directory / "run" / "results.h5") as file:
            expected = int(file["experiments"]["step_time_ps"][14])
        for words in ([], ["--coupled"]):
            done = run("run", SWEEPS / "tiny.yaml", "--experiment", 14, "--json", *words, directory=self.directory)
            self.assertEqual(json.loads(done.stdout)["step_time_ps"], expected)
        refused = run("run", SWEEPS / "tiny.yaml", directory=self.directory, expect=2).stderr
        self.assertIn("--experiment 0", refused)
        self.assertIn("strategy.tp", refused)

    def test_net_runs_flows_and_collectives_and_both_ways_agree(self):
        (self.directory / "flows.csv").write_text("src,dst,bytes,start_ps\n" + "".join(
            f"{source},0,2000000,{1000 * source}\n" for source in range(1, 8)))
        words = ["net", SWEEPS / "tiny.yaml", "--experiment", 0]
        for what in (["--flows", "flows.csv"], ["--collective", "all_reduce", "--bytes", "16MiB"]):
            divided, plain = (run(*words, *what, "--csv", *more, directory=self.directory).stdout
                              for more in ([], ["--plain"]))
            self.assertEqual(divided, plain)
            summary = json.loads(run(*words, *what, "--json", directory=self.directory).stdout)
            ends = [int(line.rsplit(",", 1)[1]) for line in divided.splitlines()[1:]]
            self.assertEqual(summary["end_ps"], max(ends))
            self.assertIn("link-hops", run(*words, *what, directory=self.directory).stdout)

    def test_every_verb_explains_itself(self):
        usage = run("--help", directory=self.directory).stdout
        verbs = re.findall(r"^  (\w+) ", usage, re.MULTILINE)
        for verb in ("sweep", "run", "resume", "status", "net", "top", "diff", "list", "schema"):
            self.assertIn(verb, verbs)
        for verb in verbs:
            self.assertIn(f"manyworlds {verb}", run(verb, "-h", directory=self.directory).stdout)


if __name__ == "__main__":
    unittest.main()
