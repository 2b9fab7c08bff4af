"""Disks that fill up, cannot be written, or lose and change bytes: a clear message or healing, and never a wrong answer."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import SWEEPS, run

TINY = SWEEPS / "tiny.yaml"
HEADER = 72  # bytes of a record before its payload: docs/formats.md


def can_mount():
    """Whether this process may mount a file system at all: root outside of a container usually may."""
    with tempfile.TemporaryDirectory() as directory:
        if subprocess.run(["mount", "-t", "tmpfs", "none", directory], capture_output=True).returncode != 0:
            return False
        subprocess.run(["umount", directory], check=True)
        return True


MOUNTS = os.geteuid() == 0 and shutil.which("mount") is not None and can_mount()


class DamagedDisks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-whole-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.whole = cls.shared / "whole"  # a run that nothing happened to
        cls.call("sweep", TINY, "-o", cls.whole)

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-disk-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    @classmethod
    def call(cls, verb, *words, store="none", ranks=("-j", 1, "--in-process"), expect=0, user=None):
        runs = verb in ("sweep", "resume")
        words = [verb, *words, *(ranks if runs else ()), *(["--store", store] if runs else ())]
        return run(*words, directory=cls.shared, expect=expect, user=user)

    def assert_whole(self, run):
        self.assertEqual(self.call("diff", self.whole, run).stdout, "same results\n")

    def one_line(self, text, *words):
        self.assertEqual(text.count("\n"), 1, text)
        for word in words:
            self.assertIn(str(word), text)

    @contextlib.contextmanager
    def small_disk(self, kilobytes):
        disk = self.directory / "disk"
        disk.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", disk], check=True)
        try:
            yield disk
        finally:
            subprocess.run(["umount", disk], check=True)

    @unittest.skipUnless(MOUNTS, "mounting a small file system needs root outside of a container")
    def test_a_run_whose_disk_fills_up_says_so_and_goes_on_when_there_is_room(self):
        journal = max((self.whole / "journal").iterdir(), key=lambda file: file.stat().st_size).stat().st_size // 1024
        # Too little for the frozen sweep; for the journal; for all of it; for the results beside it.
        for room, ranks in ((12, 1), (80, 1), (40 + journal // 2, 2), (56 + journal, 1)):
            with self.subTest(room=room), self.small_disk(4096) as disk:
                filler = disk / "filler"
                filler.write_bytes(bytes((4096 - room) * 1024))
                words = ("-j", ranks) if ranks > 1 else ("-j", 1, "--in-process")
                done = self.call("sweep", TINY, "-o", disk / "run", ranks=words, expect=74)
                said = [line for line in done.stderr.splitlines() if line.startswith("manyworlds")]  # not mpirun
                self.assertEqual(len(said), 1, done.stderr)
                self.assertRegex(said[0], r"cannot \w+.* " + str(disk) + r".*: No space left on device")
                self.assertEqual(done.stdout, "")
                self.assertFalse((disk / "run" / "results.h5").exists())
                begun = (disk / "run" / "sweep.resolved.json").exists()
                if begun:
                    self.assertRegex(said[0], f"make room, then `manyworlds resume {disk}/run.*` resumes it")
                    if not (disk / "run" / "status.json").exists():
                        told = self.call("status", disk / "run", expect=2).stderr
                        self.assertRegex(told, "the run ended without a status: .*No space left on device")
                filler.unlink()
                if begun:
                    self.call("resume", disk / "run", ranks=words)
                else:
                    self.call("sweep", TINY, "-o", disk / "run", ranks=words)
                self.assert_whole(disk / "run")

    @unittest.skipUnless(MOUNTS, "mounting a small file system needs root outside of a container")
    def test_a_full_disk_under_the_store_alone_ends_no_run(self):
        for room in (4, 24):
            with self.subTest(room=room), self.small_disk(room) as disk:
                done = self.call("sweep", TINY, "-o", self.directory / f"run{room}", store=disk)
                self.assertIn("No space left on device; going on without keeping results in the store", done.stderr)
                self.assertEqual(done.stderr.count("No space left"), 1)
                self.assert_whole(self.directory / f"run{room}")
                self.assertIn("no damage", self.call("store", "verify", "--store", disk).stdout)

    @contextlib.contextmanager
    def read_only(self, folder):
        """Yields who cannot write there: root by a mount, anybody else by permissions."""
        if os.geteuid() == 0:
            subprocess.run(["mount", "--bind", folder, folder], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        else:
            folder.chmod(0o555)
        try:
            yield
        finally:
            if os.geteuid() == 0:
                subprocess.run(["umount", folder], check=True)
            else:
                folder.chmod(0o755)

    @unittest.skipUnless(MOUNTS or os.geteuid() != 0, "as root a folder that cannot be written needs a mount")
    def test_a_folder_that_can_only_be_read(self):
        folder = self.directory / "folder"
        shutil.copytree(self.whole, folder / "run")
        self.call("sweep", TINY, "-o", self.directory / "filling", store=folder / "store")
        run, store = folder / "run", folder / "store"
        with self.read_only(folder):
            for verb, words in (("sweep", [TINY, "-o", folder / "new"]), ("sweep", [TINY, "-o", run]),
                                ("resume", [run])):
                if os.geteuid() != 0 and run in words:
                    continue  # permissions of the folder above do not make the run's own files read-only
                self.one_line(self.call(verb, *words, expect=2).stderr, folder)
            self.assertIn("tokens", self.call("top", run).stdout)
            self.assertIn("complete", self.call("status", run).stdout)
            self.assert_whole(run)
            done = self.call("sweep", TINY, "-o", self.directory / "reading", store=store)
            self.assertNotIn("cannot", done.stderr)  # everything is there, nothing has to be written
            if os.geteuid() == 0:
                done = self.call("sweep", TINY, "-o", self.directory / "more", "--set", "strategy.global_batch=32",
                                 store=store)
                self.assertIn("Read-only file system; going on without keeping results in the store", done.stderr)
        self.assert_whole(self.directory / "reading")

    def test_a_journal_cut_or_changed_in_its_last_two_records_costs_no_more_than_those(self):
        original, = (file for file in (self.whole / "journal").iterdir())
        whole = original.read_bytes()
        places = [match.start() for match in re.finditer(b"MWRC", whole)]
        last, before = len(whole) - places[-1], len(whole) - places[-2]
        for back, flip in ((0, False), (1, False), (last - HEADER, False), (last - HEADER + 1, False), (last, False),
                           (last + 1, False), (before - 1, False), (1, True), (last - 9, True), (before - 70, True)):
            with self.subTest(back=back, flip=flip):
                run = self.directory / f"run{back}{flip}"
                shutil.copytree(self.whole, run)
                (run / "results.h5").unlink()
                at = len(whole) - back
                changed = whole[:at] + (bytes([whole[at] ^ 4]) + whole[at + 1:] if flip else b"")
                journal = run / "journal" / original.name
                journal.write_bytes(changed)
                done = self.call("resume", run)
                self.assert_whole(run)
                if flip:
                    self.assertIn(f"{journal}: damaged in 1 place", done.stderr)
                elif back not in (0, last, before):
                    self.assertIn(f"{journal}: the record at byte", done.stderr)
                    self.assertIn("never finished", done.stderr)
                else:
                    self.assertNotIn(str(journal), done.stderr)

    def test_results_with_a_flipped_bit_are_refused_and_made_again(self):
        run = self.directory / "run"
        shutil.copytree(self.whole, run)
        results = run / "results.h5"
        whole = results.read_bytes()
        for at in (3, len(whole) // 2, len(whole) - 1):
            with self.subTest(at=at):
                results.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
                for verb, words, code in (("top", [run], 2), ("diff", [self.whole, run], 2)):
                    self.one_line(self.call(verb, *words, expect=code).stderr, results)
                self.call("resume", run)
                self.assert_whole(run)

    def test_a_flipped_bit_anywhere_in_the_frozen_sweep_is_noticed(self):
        run = self.directory / "run"
        shutil.copytree(self.whole, run)
        whole = (run / "sweep.resolved.json").read_bytes()
        for at in range(0, len(whole), len(whole) // 12):
            with self.subTest(at=at):
                (run / "sweep.resolved.json").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
                self.one_line(self.call("resume", run, expect=2).stderr, run / "sweep.resolved.json")

    def test_other_files_of_a_run_with_a_flipped_bit_or_cut_are_told(self):
        for name in ("sweep.resolved.json", "build.json", "status.json", "complete.json"):
            whole = (self.whole / name).read_bytes()
            for changed in (b"", whole[:len(whole) // 2], b"\xff" + whole[1:]):
                with self.subTest(name, bytes=len(changed)):
                    run = self.directory / "run"
                    shutil.rmtree(run, ignore_errors=True)
                    shutil.copytree(self.whole, run)
                    (run / name).write_bytes(changed)
                    if name in ("sweep.resolved.json", "build.json"):
                        self.one_line(self.call("resume", run, expect=2).stderr, run)
                    else:
                        self.call("resume", run)
                        self.assert_whole(run)


if __name__ == "__main__":
    unittest.main(verbosity=2)
