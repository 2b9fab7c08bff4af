"""Outputs go where they were asked to and nowhere else: devices, FIFOs, links, planted temporaries, folders of others."""

import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import threading
import unittest

from program import PROGRAM, SWEEPS, environment_in, run
from tally import Tally

NOBODY = 65534
OUTPUTS = {  # every word that names a file to write
    "export": ["export", "whole", "--csv", "-o"],
    "report": ["report", "whole", "-o"],
    "report --md": ["report", "whole", "--md", "-o"],
    "run --timeline": ["run", "one.yaml", "--timeline"],
    "run --schedule": ["run", "one.yaml", "--schedule"],
    "run --kernels": ["run", "one.yaml", "--kernels"],
}


class Outputs(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-outputs-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        run("sweep", SWEEPS / "tiny.yaml", "-o", "whole", "-j", 1, "--store", "none", directory=self.directory)
        (self.directory / "one.yaml").write_text(
            "base: {model: gpt3-1.3b, cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 8, nic_gbps: 400},\n"
            "  strategy: {tp: 2, pp: 2, micro_batch: 1, global_batch: 8}}\n")
        self.verbs = {verb: words for verb, words in OUTPUTS.items() if verb != "run --kernels"}

    def write(self, verb, target, **more):
        return subprocess.run([PROGRAM, *map(str, self.verbs[verb]), str(target)], cwd=self.directory, timeout=240,
                              capture_output=True, env=environment_in(self.directory), stdin=subprocess.DEVNULL, **more)

    def test_what_is_no_regular_file_is_written_to_and_stays(self):
        tally = Tally("written through")
        for verb in self.verbs:
            plain = self.directory / "plain" / "out"  # a report names its pictures after itself
            plain.parent.mkdir(exist_ok=True)
            self.assertEqual(self.write(verb, plain).returncode, 0)
            expected = plain.read_bytes()

            fifo, heard = self.directory / "out", []
            os.mkfifo(fifo)
            listens = threading.Thread(target=lambda: heard.append(fifo.read_bytes()))
            listens.start()
            code = self.write(verb, fifo).returncode
            listens.join()
            tally.note("FIFO", code == 0 and heard == [expected] and fifo.is_fifo(), verb)
            fifo.unlink()

            real, link = self.directory / "real", self.directory / "out"
            real.write_bytes(b"old")
            real.chmod(0o640)
            link.symlink_to("real")
            code = self.write(verb, link).returncode
            tally.note("link", code == 0 and link.is_symlink() and real.read_bytes() == expected and
                       stat.S_IMODE(real.stat().st_mode) == 0o640, verb)
            link.unlink()

            if os.geteuid() == 0:
                device = self.directory / "null"
                try:
                    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
                    device.open("wb").close()
                except PermissionError:  # a container, or a file system without devices
                    continue
                code = self.write(verb, device).returncode
                tally.note("device", code == 0 and stat.S_ISCHR(device.stat().st_mode), verb)
                device.unlink()
        tally.check(self)

    def test_standard_output_by_its_name_is_what_it_is(self):
        tally = Tally("/dev/stdout")
        expected = run("export", "whole", "--csv", directory=self.directory).stdout.encode()
        before = os.stat("/dev/stdout", follow_symlinks=False)
        done = self.write("export", "/dev/stdout")
        tally.note("pipe", done.stdout == expected)
        with open(self.directory / "log", "wb") as log:
            log.write(b"before\n")
            log.flush()
            subprocess.run([PROGRAM, "export", "whole", "--csv", "-o", "/dev/stdout"], cwd=self.directory, check=True,
                           stdout=log, env=environment_in(self.directory))
        tally.note("file", (self.directory / "log").read_bytes() == b"before\n" + expected)
        after = os.stat("/dev/stdout", follow_symlinks=False)
        tally.note("still there", (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode))
        tally.check(self)

    @unittest.skipUnless(os.geteuid() == 0, "another user is at hand for root alone")
    def test_nobody_plants_a_temporary(self):
        """In a folder where others may make files, every name that could be foreseen leads to a file of the victim's."""
        tally = Tally("planted temporaries")
        self.directory.chmod(0o755)
        folder = self.directory / "open"
        folder.mkdir()
        folder.chmod(0o1777)
        precious = self.directory / "precious"
        for verb in self.verbs:
            precious.write_text("precious")
            process = subprocess.Popen(["sleep", "0"])  # its number is near the next ones
            process.wait()
            def plant():
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                for number in range(process.pid + 1, process.pid + 200):
                    for name in (f"out.{number}.aside", f"out.{number}", f".out.{number}", f"out.{number}.tmp"):
                        (folder / name).symlink_to(precious)
            subprocess.run(["true"], preexec_fn=plant, check=True)
            code = self.write(verb, folder / "out").returncode
            tally.note(verb, code == 0 and precious.read_text() == "precious" and not (folder / "out").is_symlink())
            shutil.rmtree(folder)
            folder.mkdir()
            folder.chmod(0o1777)
        tally.check(self)

    def test_what_runs_leave_is_the_owners_alone_under_any_umask(self):
        tally = Tally("modes")
        for umask in (0o000, 0o002, 0o022):
            name = f"run{umask}"
            subprocess.run([PROGRAM, "sweep", SWEEPS / "tiny.yaml", "-o", f"deep{umask}/{name}", "-j", "2", "--store",
                            f"store{umask}"], cwd=self.directory, check=True, capture_output=True, umask=umask,
                           env=environment_in(self.directory))
            for top in (self.directory / f"deep{umask}" / name, self.directory / f"store{umask}"):
                for path in (top, *top.rglob("*")):
                    mode = stat.S_IMODE(path.stat().st_mode)
                    tally.note(f"umask {umask:03o}", mode & 0o077 == 0, f"{path}: {mode:o}")
            above = stat.S_IMODE((self.directory / f"deep{umask}").stat().st_mode)
            tally.note("folder above", above & 0o022 == 0, oct(above))
        tally.check(self)


if __name__ == "__main__":
    unittest.main()
