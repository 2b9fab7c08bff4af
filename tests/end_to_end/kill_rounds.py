"""Rounds of kill -9: a real sweep under mpirun loses random processes, is resumed until it is complete, and has the
answer of an undisturbed run. Usage: kill_rounds.py [FIRST_SEED LAST_SEED]; the same seed draws the same kills."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from program import PATIENCE_S, PROGRAM, ROOT, SLOW_SWEEP, answer_digest, environment_in, kill_all, marked, provenance, run

FIRST, LAST = (int(sys.argv.pop(1)), int(sys.argv.pop(1))) if len(sys.argv) > 2 else (1, 2)
RANKS = 3


def words_of(process):
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        environment = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return [], {}
    return words, dict(entry.split(b"=", 1) for entry in environment if b"=" in entry)


def ranks_of(mark):
    """The processes of each rank: those that move messages, fork and simulate have the same words and environment."""
    ranks = {}
    for process in marked(mark):
        words, environment = words_of(process)
        rank = environment.get(b"OMPI_COMM_WORLD_RANK")
        if rank is not None and words and words[0].endswith(b"manyworlds"):
            ranks.setdefault(int(rank), []).append(process)
    return {rank: sorted(processes) for rank, processes in ranks.items()}


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Round:
    """One life after another of the same run; `seed` draws who is killed and when."""

    def __init__(self, directory, seed):
        self.directory, self.seed = directory, seed
        self.name = f"round-{seed}"
        self.random = random.Random(seed)
        self.kills = []

    def strike(self, mark):
        ranks = ranks_of(mark)
        if len(ranks) < RANKS:
            return
        if self.seed % 10 == 5:
            self.kills.append("all")
            kill_all(mark)
        elif self.seed % 5 == 3:
            self.kills.append("coordinator")
            kill(ranks[0][0])
        else:
            # Its simulator or its zygote (of any rank), or the process that moves messages (of one that follows).
            rank = self.random.randrange(RANKS)
            victims = ranks[rank][1:] if rank == 0 else ranks[rank]
            if victims:
                self.kills.append(f"rank {rank}")
                kill(self.random.choice(victims))

    def first_life(self):
        mark = uuid.uuid4().hex
        process = subprocess.Popen([PROGRAM, "sweep", "killed.yaml", "-o", self.name, "-j", str(RANKS), "--store", "none"],
                                   cwd=self.directory, env=environment_in(self.directory, mark), start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        status = self.directory / self.name / "status.json"
        while not status.exists() and process.poll() is None:
            time.sleep(0.02)
        strikes = 1 if self.seed % 5 in (0, 3) else 1 + self.random.randrange(4)
        for _ in range(strikes):
            time.sleep(self.random.uniform(0.1, 0.8))
            if process.poll() is None:
                self.strike(mark)
        try:
            process.wait(timeout=PATIENCE_S)
        finally:
            kill_all(mark)
        return process.returncode

    def later_lives(self):
        lives = 0
        while not (self.directory / self.name / "results.h5").exists() or self.complete()["exit"] != 0:
            lives += 1
            assert lives < 5, f"seed {self.seed} needs too many lives"
            done = subprocess.run([PROGRAM, "resume", self.name, "-j", str(RANKS), "--retry-failed", "--store", "none"],
                                  cwd=self.directory, env=environment_in(self.directory), timeout=PATIENCE_S,
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert done.returncode == 0, f"seed {self.seed}: resume gave {done.returncode}\n{done.stderr}"
        return lives

    def complete(self):
        try:
            return json.loads((self.directory / self.name / "complete.json").read_text())
        except FileNotFoundError:
            return {"exit": None}

    def records(self):
        """Of every journal file in order: (kind, key)."""
        found = []
        for path in sorted((self.directory / self.name / "journal").iterdir()):
            read = subprocess.run([sys.executable, ROOT / "tests" / "io" / "read_records.py", path], check=True,
                                  capture_output=True, text=True)
            found += [(record["kind"], tuple(record["digest"])) for record in json.loads(read.stdout)["records"]]
        return found

    def reverse_journal(self):
        """The last life becomes the first, so that of what two lives computed the other result counts."""
        files = sorted((self.directory / self.name / "journal").iterdir())
        for number, path in enumerate(reversed(files), 1):
            path.rename(path.with_name(f"{number + len(files):06}-reversed-0.journal"))
        (self.directory / self.name / "complete.json").unlink()
        (self.directory / self.name / "results.h5").unlink()


class KillRounds(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-kill-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "killed.yaml").write_text(SLOW_SWEEP)

    def test_what_is_killed_and_resumed_has_the_answer_of_an_undisturbed_run(self):
        run("sweep", "killed.yaml", "-o", "undisturbed", "-j", 2, "--store", "none", directory=self.directory)
        expected = answer_digest(self.directory / "undisturbed" / "results.h5")
        figures = provenance(self.directory / "undisturbed" / "results.h5")
        tasks = figures["tasks_collectives"] + figures["tasks_steps"]
        bites, twice = 0, 0
        for seed in range(FIRST, LAST + 1):
            begin = time.monotonic()
            one = Round(self.directory, seed)
            code = one.first_life()
            lives = one.later_lives()
            bites += bool(one.kills)
            results = self.directory / one.name / "results.h5"
            self.assertEqual(answer_digest(results), expected, f"seed {seed}")
            # Nothing is lost: the journal alone has a result of every task.
            records = one.records()
            computed = [key for kind, key in records if kind == 1]
            self.assertEqual(len(set(computed)), tasks, f"seed {seed}")
            # Nothing has two ends: whichever result of a key is taken, the answer is the same.
            if len(computed) > len(set(computed)):
                twice += 1
                one.reverse_journal()
                run("resume", one.name, "-j", 1, "--store", "none", directory=self.directory)
                self.assertEqual(answer_digest(results), expected, f"seed {seed}, journal reversed")
                self.assertEqual(provenance(results)["tasks_computed"], 0)
            print(f"seed {seed}: killed {', '.join(one.kills) or 'nobody'}; exit {code}, {lives} more lives, "
                  f"{len(computed) - tasks} computed twice, {time.monotonic() - begin:.0f} s", flush=True)
            shutil.rmtree(self.directory / one.name)
        self.assertGreaterEqual(bites, (LAST - FIRST + 1) * 0.6, "the kills came too late to matter")


if __name__ == "__main__":
    unittest.main()
