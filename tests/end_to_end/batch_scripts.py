"""The batch scripts that `manyworlds slurm` writes: whole, clean, and right for any name; what it refuses. No Slurm needed."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from fake_commands import fake_command
from program import PATIENCE_S, PROGRAM, ROOT, SWEEPS

TINY = SWEEPS / "tiny.yaml"


class BatchScripts(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-scripts-")).resolve()
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "bin").mkdir()

    def fake_command(self, name, body):
        fake_command(self.directory / "bin", name, body, self.directory / "calls")

    def calls(self):
        return (self.directory / "calls").read_text().splitlines()

    def slurm(self, *words, expect=0, spec=TINY):
        done = subprocess.run([PROGRAM, "slurm", str(spec), *map(str, words)], cwd=self.directory, text=True,
                              capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PATH": f"{self.directory}/bin"})  # no Slurm but the fake commands
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def script(self, name, run="runs/tiny"):
        return (self.directory / f"{run}.slurm" / name).read_text()

    def test_one_job_on_many_nodes(self):
        done = self.slurm("--nodes", 4, "--tasks-per-node", 16, "--time", "1-02:00:00", "--partition", "short,long",
                          "--account", "physics", "--set", "strategy.global_batch=32", "--store", "store")
        self.assertEqual(done.stdout, f"sbatch {self.directory}/runs/tiny.slurm/sweep.sh\n")
        text = self.script("sweep.sh")
        for option in ("nodes=4", "ntasks-per-node=16", "time=1-02:00:00", "partition=short,long", "account=physics",
                       "requeue", "open-mode=append", "signal=B:USR1@120", "job-name=tiny",
                       f'output="{self.directory}/runs/tiny.slurm/%x-%j.out"'):
            self.assertIn(f"\n#SBATCH --{option}\n", text)
        self.assertIn(f"command=({PROGRAM} sweep {TINY} --set strategy.global_batch=32 --store {self.directory}/store)\n", text)
        self.assertIn(f"run={self.directory}/runs/tiny\n", text)
        self.assertNotIn("--array=", text.split("set -u")[0].split("#SBATCH --job-name")[1])
        self.assertFalse((self.directory / "runs/tiny.slurm/merge.sh").exists())
        self.assertFalse((self.directory / "runs/tiny").exists())

    def test_an_array_of_shards_and_what_joins_them(self):
        done = self.slurm("--array", 12, "--tasks-per-node", 8, "--srun", "-o", "here", "--margin", 300)
        scripts = f"{self.directory}/here.slurm"
        self.assertEqual(done.stdout, f"sbatch --dependency=afterany:$(sbatch --parsable {scripts}/sweep.sh) {scripts}/merge.sh\n")
        sweep, merge = self.script("sweep.sh", "here"), self.script("merge.sh", "here")
        self.assertIn("\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=8\n#SBATCH --array=1-12\n", sweep)
        self.assertIn("\n#SBATCH --signal=B:USR1@300\n", sweep)
        self.assertIn(f"command=({PROGRAM} sweep {TINY} --srun)\n", sweep)
        self.assertIn('command+=(--shard "$SLURM_ARRAY_TASK_ID/12")', sweep)
        self.assertIn('shards=("$run".shards/*-of-12)', merge)

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_scripts_are_clean_whatever_the_names(self):
        odd = self.directory / "it's a sweep; $(touch gone) @NAME@"
        odd.mkdir()
        shutil.copy(TINY, odd / "a spec.yaml")
        self.slurm("-o", odd / "the run", "--array", 2, "--tasks-per-node", 1, "--set", "name=O'Neill @RUN@ $HOME",
                   spec=odd / "a spec.yaml", expect=2)  # a sweep's name cannot be set
        self.slurm("-o", odd / "the run", "--array", 2, "--tasks-per-node", 1, spec=odd / "a spec.yaml")
        scripts = [odd / "the run.slurm" / name for name in ("sweep.sh", "merge.sh")]
        for script in scripts:
            found = subprocess.run(["shellcheck", "-e", "SC2016", script], capture_output=True, text=True)
            self.assertEqual(found.stdout, "")
            self.assertNotIn("@SHARDS@", script.read_text())
        # A shell reads the words back as they were.
        words = next(line for line in scripts[0].read_text().splitlines() if line.startswith("command=("))
        read = subprocess.run(["bash", "-c", f'{words}; printf "%s\\n" "${{command[@]}}"'], cwd=self.directory,
                              capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(read, [PROGRAM, "sweep", str(odd / "a spec.yaml")])
        self.assertFalse((self.directory / "gone").exists())

    def test_tasks_are_as_many_as_the_smallest_node_of_the_partition_has_cpus(self):
        self.assertIn("give --tasks-per-node", self.slurm(expect=2).stderr)
        self.fake_command("sinfo", "printf '96\\n64\\n128\\n'")
        self.assertIn("64 tasks on a node", self.slurm("--partition", "short").stderr)
        self.assertIn("\n#SBATCH --ntasks-per-node=64\n", self.script("sweep.sh"))
        self.assertEqual(self.calls(), ["sinfo -h -N -o %c -p short"])

    def test_each_task_has_the_cpus_of_its_threads(self):
        self.fake_command("sinfo", "printf '96\\n60\\n'")
        self.assertIn("7 tasks on a node, as many as it has CPUs for, 8 each\n", self.slurm("--threads", 8).stderr)
        text = self.script("sweep.sh")
        self.assertIn("\n#SBATCH --ntasks-per-node=7\n#SBATCH --cpus-per-task=8\n", text)
        self.assertIn(f"command=({PROGRAM} sweep {TINY} --threads 8)\n", text)
        self.slurm("--tasks-per-node", 2)
        self.assertNotIn("cpus-per-task", self.script("sweep.sh"))
        self.assertIn("from 1 to", self.slurm("--threads", 0, expect=2).stderr)

    def test_arrays_stay_below_what_the_site_allows(self):
        words = ("--tasks-per-node", 1, "--array")
        self.assertIn("from 1 to 1000", self.slurm(*words, 1001, expect=2).stderr)
        self.fake_command("scontrol", "echo 'MaxArraySize            = 51'")
        self.assertIn("from 1 to 50", self.slurm(*words, 51, expect=2).stderr)
        self.slurm(*words, 50)
        self.assertIn("from 1 to", self.slurm(*words, 0, expect=2).stderr)

    def test_submitted_scripts_depend_on_each_other(self):
        self.fake_command("sbatch", 'case $* in *merge.sh) echo "18;cluster" ;; *) echo "17;cluster" ;; esac')
        self.assertEqual(self.slurm("--tasks-per-node", 2, "--submit").stdout, "17\n")
        done = self.slurm("--tasks-per-node", 2, "--array", 3, "--submit")
        self.assertEqual(done.stdout, "17\n18\n")
        scripts = f"{self.directory}/runs/tiny.slurm"
        self.assertEqual(self.calls(), [f"sbatch --parsable {scripts}/sweep.sh", f"sbatch --parsable {scripts}/sweep.sh",
                                        f"sbatch --parsable --dependency=afterany:17 {scripts}/merge.sh"])
        self.fake_command("sbatch", "echo refused >&2; exit 1")
        self.assertIn("sbatch refused", self.slurm("--tasks-per-node", 2, "--submit", expect=2).stderr)

    def test_what_cannot_be_is_refused_in_one_line(self):
        words = ("--tasks-per-node", 1)
        for wrong, said in ((("--time", "soon"), "it takes minutes"), (("--partition", "a b"), "names of partitions"),
                            (("--account", ""), "it takes the name of an account"), (("--margin", 5), "at least 20 s"),
                            (("--margin", 65536), "from 1 to 65535"), (("--nodes", 0), "from 1 to"),
                            (("--array", 2, "--nodes", 2), "each shard has one node"), (("-o", 'a"b'), "cannot name"),
                            (("--set", "strategy.tpp=2"), "strategy.tp"), (("--srn",), "--srun")):
            done = self.slurm(*words, *wrong, expect=2)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("is not installed", self.slurm(*words, "--submit", expect=2).stderr.splitlines()[-1])
        (self.directory / "taken").mkdir()
        (self.directory / "taken/sweep.resolved.json").write_text("{}\n")
        self.assertIn("another sweep", self.slurm(*words, "-o", "taken", expect=2).stderr)

    def life(self, program, *words, signal_after=None, margin_s=20, **environment):
        """A life of sweep.sh with `program` in place of ours: its exit code, and how often it asked to be queued again.
        A margin below 20 s, which nobody may ask for, is written into the script."""
        self.fake_command("program", program)
        self.fake_command("scontrol", "")
        if not (self.directory / "bin/squeue").exists():
            self.fake_command("squeue", "exit 1")
        self.slurm("--tasks-per-node", 1, "--margin", 20, "--store", "none", *words)
        script = self.directory / "life.sh"
        text = self.script("sweep.sh").replace(PROGRAM, f"{self.directory}/bin/program")
        self.assertIn("\nmargin_s=20 ", text)
        script.write_text(text.replace("\nmargin_s=20 ", f"\nmargin_s={margin_s} "))
        process = subprocess.Popen(["bash", script], cwd=self.directory, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "PATH": f"{self.directory}/bin:/usr/bin:/bin", "SLURM_JOB_ID": "17",
                                        **environment})
        if signal_after:
            while not signal_after.exists():
                time.sleep(0.05)
            process.send_signal(signal.SIGUSR1)
        code = process.wait(timeout=PATIENCE_S)
        return code, self.calls().count("scontrol requeue 17")

    def test_a_life_ends_as_the_sweep_does_and_asks_for_another_when_it_was_drained(self):
        for code in (0, 2, 3, 70, 74):
            self.assertEqual(self.life(f"exit {code}"), (code, 0))
        self.assertEqual(self.life("exit 75"), (75, 1))
        self.assertEqual(self.life("exit 75", SLURM_RESTART_COUNT="99"), (75, 2))
        self.assertEqual(self.life("exit 75", SLURM_RESTART_COUNT="100"), (75, 2))  # a hundred lives are enough

    def test_the_warning_is_passed_on_and_what_comes_of_it_counts(self):
        begun = self.directory / "begun"
        drains = f"trap 'sleep 2; exit 75' USR1; touch {begun}; while true; do sleep 0.1; done"
        self.assertEqual(self.life(drains, signal_after=begun), (75, 1))
        begun.unlink()
        finishes = f"trap 'sleep 1; exit 3' USR1; touch {begun}; while true; do sleep 0.1; done"
        self.assertEqual(self.life(finishes, signal_after=begun), (3, 1))

    def test_a_sweep_that_does_not_stop_is_left_to_slurm_in_time_for_another_life(self):
        begun, number = self.directory / "begun", self.directory / "number"
        deaf = f"trap '' USR1; echo $$ >{number}; touch {begun}; exec sleep 600"
        self.assertEqual(self.life(deaf, signal_after=begun, margin_s=4), (75, 1))
        os.kill(int(number.read_text()), signal.SIGKILL)  # it is there still

    def test_the_time_that_is_left_comes_from_slurm(self):
        def stops_after(**environment):
            self.life("exit 0", **environment)
            call = next(call for call in reversed(self.calls()) if call.startswith("program "))
            found = re.search(r"--stop-after (\d+)s -o ", call)
            return int(found.group(1)) if found else None
        now = int(time.time())
        self.assertAlmostEqual(stops_after(SLURM_JOB_END_TIME=str(now + 3600)), 3580, delta=30)
        self.assertEqual(stops_after(SLURM_JOB_END_TIME=str(now + 5)), 1)
        self.fake_command("squeue", f"date -d @{now + 7200} +%FT%T")
        self.assertAlmostEqual(stops_after(), 7180, delta=30)
        self.assertIn("squeue -h -j 17 -o %e", self.calls())
        self.fake_command("squeue", "echo N/A")  # no limit
        self.assertIsNone(stops_after())

    def test_a_task_of_an_array_computes_its_shard_in_a_place_of_its_own(self):
        self.life("exit 0", "--array", 3, SLURM_ARRAY_TASK_ID="2")
        call, = (call for call in self.calls() if call.startswith("program "))
        self.assertTrue(call.endswith(f"--shard 2/3 -o {self.directory}/runs/tiny.shards/2-of-3"), call)

    def test_a_filled_script_differs_from_its_template_in_words_only(self):
        self.slurm("--array", 2, "--tasks-per-node", 1)
        for name in ("sweep.sh", "merge.sh"):
            template = (ROOT / "slurm" / name).read_text().splitlines()
            filled = [line for line in self.script(name).splitlines()]
            same = [line for line in template if "@" not in line.replace("[@]", "").replace("@ signs", "")]
            self.assertGreater(len(same), 15)
            for line in same:
                self.assertIn(line, filled)


if __name__ == "__main__":
    unittest.main()
