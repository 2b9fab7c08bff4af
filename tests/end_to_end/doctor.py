"""What `manyworlds doctor` finds on a machine: real MPI and disks, and made-up launchers, Slurms and folders that do not work."""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import unittest

from fake_commands import fake_command
from program import PROGRAM, environment_in


class Doctor(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-doctor-")).resolve()
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "bin").mkdir()

    def fake(self, name, body):
        fake_command(self.directory / "bin", name, body, self.directory / "calls")

    def doctor(self, *words, path=None, expect=0, before=None, **environment):
        """What it prints. With `path` None there are only the fake commands and those of a shell."""
        variables = environment_in(self.directory, PATH=path or f"{self.directory}/bin", **environment)
        done = subprocess.run([PROGRAM, "doctor", *words], cwd=self.directory, env=variables, capture_output=True, text=True,
                              timeout=300, stdin=subprocess.DEVNULL, preexec_fn=before)
        self.assertEqual((done.returncode, done.stderr), (expect, ""), done.stdout)
        return done.stdout

    def findings(self, *words, **more):
        read = json.loads(self.doctor("--json", *words, **more))
        found = {one["name"]: one for one in read["findings"]}
        self.assertEqual(read["usable"], all(one["state"] == "ok" or not one["needed"] for one in found.values()))
        return found

    def test_here_ranks_meet_and_folders_serve(self):
        found = self.findings(path=os.environ["PATH"])
        for name in ("program", "processors", "memory", "limits", "runs", "store", "temporary", "HDF5", "MPI"):
            self.assertEqual((found[name]["state"], found[name]["advice"]), ("ok", ""), found[name])
        self.assertIn("started two ranks, which exchanged messages", found["MPI"]["found"])
        self.assertIn("a file was written and read", found["HDF5"]["found"])
        self.assertEqual([path.name for path in self.directory.iterdir()], ["bin"])  # it leaves nothing
        self.assertTrue(self.doctor(path=os.environ["PATH"]).endswith("sweeps run on this machine\n"))

    def test_without_mpi_and_slurm_one_machine_is_enough(self):
        found = self.findings()
        self.assertEqual((found["MPI"]["state"], found["Slurm"]["state"]), ("missing", "missing"))
        text = self.doctor()
        self.assertRegex(text, r"(?m)^missing  MPI  .*\n +-> install it")

    def test_a_launcher_that_fails_hangs_or_is_another_librarys_is_broken(self):
        answers = {"echo no slots >&2; exit 1": "ended with 1: no slots",
                   "/bin/sleep 60": "did not answer within 1 s",
                   'while [ "$1" != doctor ]; do program=$1; shift; done; PATH=/usr/bin:/bin; "$program" "$@" & "$program" "$@"; wait':
                       "a rank sees 1 rank instead of two: the launcher is another library's"}
        for body, wanted in answers.items():
            with self.subTest(wanted):
                for name in ("mpirun.openmpi", "mpiexec.mpich"):
                    self.fake(name, body)
                patience = "1s" if "sleep" in body else "20s"
                found = self.findings("--patience", patience, expect=1)["MPI"]
                self.assertEqual(found["state"], "broken")
                self.assertIn(wanted, found["found"])
                self.assertIn("--in-process", found["advice"])

    def test_slurm_that_answers_and_slurm_that_does_not(self):
        self.fake("sinfo", 'case $* in *version*) echo slurm 22.05.8 ;; *) printf "short\\nlong\\n" ;; esac')
        self.fake("srun", "echo 'MPI plugin types are...'; echo pmix; echo none")
        found = self.findings(SLURM_JOB_ID="17", SLURM_NTASKS="128")
        self.assertEqual(found["Slurm"]["found"], "slurm 22.05.8, partitions short, long; in job 17 with 128 tasks")
        self.assertEqual(found["srun"]["state"], "ok")
        self.assertIn("128 tasks of Slurm job 17", found["processors"]["found"])

        self.fake("srun", "echo none")
        self.assertIn("mpirun starts the ranks", self.findings()["srun"]["advice"])
        self.fake("sinfo", 'case $* in *version*) echo slurm 22.05.8 ;; *) echo slurm_load: Unable to contact >&2; exit 1 ;; esac')
        self.assertIn("sinfo ended with 1: slurm_load: Unable to contact", self.findings()["Slurm"]["found"])
        self.fake("sinfo", "/bin/sleep 60")
        self.assertIn("did not answer within 1 s", self.findings("--patience", "1s")["Slurm"]["found"])

    def test_folders_that_do_not_serve(self):
        (self.directory / "file").write_text("")
        found = self.findings("-o", "file/run", TMPDIR=str(self.directory / "none"), expect=1)
        for name in ("runs", "temporary", "HDF5"):
            self.assertEqual(found[name]["state"], "broken", found[name])
        self.assertIn("No such file", found["temporary"]["found"])
        self.assertIn("-o", found["runs"]["advice"])
        self.assertEqual(self.findings("-o", "new/folder")["runs"]["state"], "ok")
        self.assertFalse((self.directory / "new").exists())
        store = self.findings(XDG_CACHE_HOME="", HOME="", expect=1)["store"]
        self.assertEqual(store["state"], "broken")

    def test_limits_that_are_too_low_are_named_with_what_raises_them(self):
        found = self.findings(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)), expect=1)["limits"]
        self.assertEqual(found["state"], "broken")
        self.assertIn("raise open files to 256 at least (ulimit -n)", found["advice"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
