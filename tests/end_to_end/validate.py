"""`manyworlds validate`: a measured row is simulated as the same experiment is by `run`, whatever the words it is told in."""

import csv
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from program import PATIENCE_S, PROGRAM, ROOT

HEADER = ("id,source,year,model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq_len,gpu,num_gpus,gpus_per_node,"
          "intra_bw_GBps,inter_bw_GBps_per_gpu,tp,pp,dp,cp,ep,vpp_interleave,sequence_parallel,micro_batch,global_batch,"
          "recompute,schedule,zero_stage,dtype,measured_step_s,notes\n")
ROW = ("{id},\"A paper, table 1\",2022,{model},4,1024,16,16,4096,51200,1024,{gpu},16,8,300,25,{tp},1,{dp},1,1,1,0,1,32,full,"
       "1F1B,0,{dtype},{measured},\n")
ROWS = [ROW.format(id="a", model="GPT small", gpu="A100-80GB", tp=2, dp=8, dtype="fp16", measured=0.1),
        ROW.format(id="b", model="GPT small", gpu="a100_80", tp=8, dp=2, dtype="fp16", measured=0.2),
        ROW.format(id="c", model="GPT small", gpu="A100-80GB", tp=5, dp=1, dtype="fp16", measured=0.3)]
# The first of them as a user would write it.
SPEC = """\
base:
  tick_ns: 200
  model: {layers: 4, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 1024}
  cluster: {gpu: {like: a100_80, scale_up_gb_per_s: 300}, nodes: 2, gpus_per_node: 8, nic_gbps: 200}
  topology: rail_optimized
  transport: {static_window: {payload_bytes: 16384}}
  collectives: {protocol: calibrated, version: "2.10"}
  strategy: {tp: 2, micro_batch: 1, global_batch: 32, recompute: full, overlap_grad_reduce: false, stack: {like: megatron-2021, precision: fp16}}
assume: 2021
"""


def program(*words, directory):
    return subprocess.run([PROGRAM, *words], cwd=directory, capture_output=True, text=True, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": f"{directory}/cache", "TMPDIR": str(directory)})


class Validate(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    def write(self, name, text):
        (self.directory / name).write_text(text)
        return name

    def validate(self, *words):
        done = program("validate", *words, directory=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_row_is_predicted_as_run_predicts_it_and_counted(self):
        table = self.write("t.csv", HEADER + "".join(ROWS))
        told = json.loads(self.validate(table, "--json", "--rows", "--in-process", "-j", "1"))
        spec = self.write("s.yaml", SPEC)
        run = program("run", spec, "--json", directory=self.directory)
        self.assertEqual(run.returncode, 0, run.stderr)
        steps, = told["kinds"]
        rows = {row["id"]: row for row in steps["rows"]}
        self.assertEqual(rows["a"]["predicted"], json.loads(run.stdout)["step_time_s"])
        self.assertEqual(rows["c"]["left_out"], "tp x pp x cp x dp is not num_gpus")
        family, = steps["families"]
        self.assertEqual((family["family"], family["rows"], family["run"], family["pairs"]), ("A paper, table 1", 3, 2, 1))
        errors = [abs(rows[id]["predicted"] / rows[id]["measured"] - 1) * 100 for id in "ab"]
        self.assertAlmostEqual(family["errors"]["mean_percent"], sum(errors) / 2, places=9)
        self.assertEqual(sum(reason["rows"] for reason in steps["left_out"]), 1)
        self.assertEqual(told["tick_ns"], 200)
        self.assertTrue(any(one["owner"] == "a100_80" and one["name"] == "gemm_efficiency" for one in told["constants"]))

    def test_choices_of_layouts_are_judged_and_which_of_them_run(self):
        lines = (ROOT / "experiments/measured/ultrascale_layouts.csv").read_text().splitlines(keepends=True)
        columns = lines[0].rstrip().split(",")
        small = [dict(zip(columns, line.rstrip().split(","))) for line in lines[1:]]
        small = [row for row in small if row["model"] == "8B" and row["gpus"] == "8"]
        table = self.write("u.csv", lines[0] + "".join(",".join(row.values()) + "\n" for row in small))
        told = json.loads(self.validate(table, "--json", "--rows", "-j", "2"))
        steps, = told["kinds"]
        choice, = steps["layout_choices"]
        times = {row["id"]: (row["measured"], row["predicted"]) for row in steps["rows"] if "predicted" in row}
        self.assertEqual((choice["measured"], choice["simulated"]), (len(times), len(times)))
        verdicts, = told["run_verdicts"]
        ran = sum(row["ran"] == "yes" for row in small)
        # The pick is predicted fastest, but for those that ran and are predicted not to fit.
        wrong = ran - verdicts["ran_right"]
        picks = sorted(times.values(), key=lambda one: one[1])[:wrong + 1]
        regrets = [100 * (pick[0] / min(times.values())[0] - 1) for pick in picks]
        self.assertIn(round(choice["regret_percent"], 9), [round(regret, 9) for regret in regrets])
        self.assertLess(wrong, len(times) / 10)
        self.assertEqual((verdicts["ran"], verdicts["did_not_run"]), (ran, len(small) - ran))
        refused = [row for row in steps["rows"] if row.get("left_out", "").startswith("it did not run")]
        self.assertEqual(len(refused), len(small) - ran)
        self.assertEqual(sum(row["detail"] == "predicted not to fit" for row in refused), verdicts["did_not_run_right"])
        self.assertIn("picks are within 10 % of the best", self.validate(table))

    def test_processes_and_order_change_nothing_and_the_run_directory_goes_away(self):
        table = self.write("t.csv", HEADER + "".join(ROWS))
        one = self.validate(table, "--rows", "--in-process", "-j", "1")
        two = self.validate(table, "--rows", "-j", "2", "--svg", "two.svg")
        self.assertEqual(one, two)
        self.assertIn("left out: tp x pp x cp x dp is not num_gpus", one)
        self.assertIn("on ticks of 200 ns", one)
        self.assertEqual(list(self.directory.glob("manyworlds-run-*")), [])
        self.assertEqual((self.directory / "two.svg").read_text().count('r="3"'), 2)
        self.validate(table, "-o", "kept", "--in-process", "-j", "1")
        self.assertTrue((self.directory / "kept" / "results.h5").exists())

    def test_peaks_of_memory_are_compared_beside_steps(self):
        lines = (ROOT / "experiments/measured/memory.csv").read_text().splitlines(keepends=True)
        steps, memory = self.write("t.csv", HEADER + ROWS[0]), self.write("m.csv", "".join(lines[:40]))
        told = json.loads(self.validate(steps, memory, "--json", "--rows", "--in-process", "-j", "1"))
        self.assertEqual([kind["kind"] for kind in told["kinds"]], ["training steps", "memory peaks"])
        peaks = told["kinds"][1]
        self.assertEqual(len(peaks["rows"]), 39)
        self.assertEqual({row["unit"] for row in peaks["rows"] if "unit" in row}, {"bytes"})
        alone = json.loads(self.validate(memory, "--json", "--rows"))
        self.assertNotIn("tick_ns", alone)  # no step was simulated
        self.assertEqual(alone["kinds"], [peaks])

    def test_a_collective_is_predicted_as_net_predicts_it(self):
        table = self.write("c.csv", "id,system,gpu,op,ranks,nodes,bytes,algorithm,time_us,inter_bw_GBps_per_gpu\n"
                                    "a,lab,A100,all_reduce,16,2,4194304,Ring,250,25\nb,lab,A100,shuffle,8,1,4096,,9,\n"
                                    "c,lab,V100,all_gather,16,2,4096,,9,\n")
        told = json.loads(self.validate(table, "--json", "--rows"))
        collectives, = told["kinds"]
        self.assertEqual(collectives["kind"], "collectives")
        self.assertEqual([reason["rows"] for reason in collectives["left_out"]], [1])
        self.assertEqual(told["assumed"], [{"column": "costs of the library: as a100_40, scaled by link speed", "rows": 1},
                                           {"column": "inter_bw_GBps_per_gpu", "rows": 1}])
        spec = self.write("s.yaml", "base:\n  model: gpt3-1.3b\n  cluster: {gpu: a100_80, nodes: 2, gpus_per_node: 8, nic_gbps: 200}\n"
                                    "  topology: rail_optimized\n  transport: {static_window: {payload_bytes: 16384}}\n"
                                    "  collectives: {protocol: calibrated}\n  strategy: {global_batch: 16}\nassume: 2021\n")
        net = program("net", spec, "--collective", "all_reduce", "--bytes", "4MiB", "--algorithm", "ring", "--json",
                      directory=self.directory)
        self.assertEqual(net.returncode, 0, net.stderr)
        self.assertAlmostEqual(collectives["rows"][0]["predicted"], json.loads(net.stdout)["completion_ps"]["max"] / 1e6,
                               places=6)

    def test_the_accuracy_page_has_a_table_that_is_of_the_form_that_is_printed_and_has_every_family(self):
        part = (ROOT / "docs/accuracy.md").read_text().split("<!-- accuracy-table -->\n")[1].split("<!-- /accuracy-table -->")[0]
        text, switches = part.split("\n\n")
        table = self.write("t.csv", HEADER + "".join(ROWS))
        printed = self.validate(table, "--markdown", "--in-process", "-j", "1").splitlines()
        self.assertEqual(text.splitlines()[:2], printed[:2])
        self.assertRegex(printed[2], r"^\| A paper, table 1 \| step time \| 2 of 3 \| \d+\.\d % \| \d+\.\d % \| – \| \d+\.\d % \| – \|$")
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]
        self.assertEqual({len(row) for row in rows}, {8})
        # What switches are worth stands behind it, in a table of its own.
        self.assertRegex(switches.splitlines()[0], r"^\| what changes \| pairs of steps \| ")
        changes = [[cell.strip() for cell in line.strip("|").split("|")] for line in switches.splitlines()[2:]]
        self.assertEqual({len(change) for change in changes}, {7})
        with open(ROOT / "experiments/measured/bars.csv", newline="") as file:
            bars = {row["family"]: float(row["percent"]) for row in csv.DictReader(file) if row["what"] == "switch"}
        self.assertEqual({change[0] for change in changes}, set(bars))
        for what, _, _, _, mean, _, bar in changes:
            missed = float(mean.rstrip(" %")) > bars[what] + 0.05
            self.assertEqual(bar, f"mean ≤ {bars[what]:g} %{' **missed**' if missed else ''}", what)
        families = {"Ultra-Scale H100"}
        for steps in ("training_steps", "layouts", "switches", "torchtitan", "primus"):
            with open(ROOT / f"experiments/measured/{steps}.csv", newline="") as file:
                families |= {row["family"] for row in csv.DictReader(file)}
        self.assertEqual({row[0] for row in rows if row[1] == "step time" and "mean over families" not in row[0]}, families)
        self.assertEqual({row[1] for row in rows}, {"step time", "collective", "kernel", "peak memory"})
        # A bar holds or is called missed, and the worst family stands first.
        for family, what, _, mean, _, _, _, bar in rows:
            if mean == "–":
                self.assertNotIn("missed", bar)
                self.assertEqual("≤" in bar, "(not run)" in bar)
            elif bound := re.match(r"mean ≤ ([\d.]+) %( \*\*missed\*\*)?", bar):
                self.assertEqual(float(mean.rstrip(" %")) > float(bound[1]) + 0.05, bool(bound[2]), f"{family}: {mean}, {bar}")
        means = [float(row[3].rstrip(" %")) for row in rows if row[1] == "collective" and row[3] != "–"]
        self.assertEqual(means, sorted(means, reverse=True))

    def test_schedules_of_the_Zero_Bubble_paper_are_as_much_faster_than_1F1B_as_measured(self):
        """Steps within 9 %, and their ratios to 1F1B within 3 %; interleaved 1F1B, whose transfers Megatron-LM of that
        time exchanged in lockstep, within 4 %."""
        with open(ROOT / "experiments" / "measured" / "training_steps.csv", newline="") as table:
            rows = [row for row in csv.DictReader(table) if row["id"].startswith("zb_")]
        self.assertEqual(len(rows), 24)
        with open(self.directory / "zb.csv", "w", newline="") as table:
            writer = csv.DictWriter(table, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        told = json.loads(self.validate("zb.csv", "--json", "--rows", "--in-process", "-j", "1"))
        steps = {row["id"]: (row["measured"], row["predicted"]) for row in told["kinds"][0]["rows"]}
        self.assertEqual(len(steps), 24)
        for name, (measured, predicted) in steps.items():
            self.assertLess(abs(predicted / measured - 1), 0.09, name)
            _, size, schedule, batches = name.split("_")
            base_measured, base_predicted = steps[f"zb_{size}_1F1B_{batches}"]
            off = (predicted / base_predicted) / (measured / base_measured) - 1
            self.assertLess(abs(off), 0.04 if schedule == "1F1B-I" else 0.03, name)

    def test_residuals_are_of_families_left_out(self):
        table = self.write("t.csv", HEADER + "".join(ROWS[:2]) + ROW.replace("A paper, table 1", "Another")
                           .format(id="d", model="GPT small", gpu="A100-80GB", tp=4, dp=4, dtype="fp16", measured=0.15))
        self.validate(table, "--leave-one-family-out", "--by-proportion", "--residuals", "r.csv", "--in-process", "-j", "1")
        with open(self.directory / "r.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["gpu"], row["kind"], row["rows"], row["pairs"]) for row in rows],
                         [("a100_80", "dense", "2", "1"), ("a100_80", "dense", "1", "0")])
        done = program("validate", table, "--residuals", "r.csv", directory=self.directory)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--residuals: needs --leave-one-family-out", done.stderr)

    def test_another_table_is_refused_with_its_name(self):
        for name, text in [("x.csv", "a,b\n1,2\n"), ("y.csv", ""), ("z.csv", HEADER)]:
            done = program("validate", self.write(name, text), directory=self.directory)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, name if name != "z.csv" else "hold no row")
        self.assertEqual(program("validate", "absent.csv", directory=self.directory).returncode, 2)

    def test_the_scripts_make_their_tables_from_themselves_again(self):
        for name, script in [("training_steps", "measured"), ("collectives", "collectives")]:
            table = ROOT / f"experiments/measured/{name}.csv"
            done = subprocess.run(["/usr/bin/python3", str(ROOT / f"script/normalise_{script}.py"), str(table), "-o",
                                   "again.csv"], cwd=self.directory, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.directory / "again.csv").read_bytes(), table.read_bytes())


if __name__ == "__main__":
    unittest.main(verbosity=2)
