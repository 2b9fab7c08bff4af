"""What the farm costs and how far it goes: one table for each part, everything in one go.

    tests/bench/farm.py [--build build/release] [PART]...

PARTS: planning   119,232 experiments (planning.yaml): wall, CPU, memory of --dry-run
       dispatch   empty tasks per CPU second, coordinator and workers in one thread, with and without a journal
       mpi        empty tasks per second of a run under mpirun on two ranks: zygotes, pipes, journal and all
       simulated  efficiency of 64 to 10,000 workers in virtual time, on durations measured of the reference sweep
       overhead   of the demo sweep on two ranks: CPU of everything that no task took, over all CPU
       two        demo sweep: wall time of one worker over that of two, and what two sweeps at once say of the machine
Seconds mean little beside other work; CPU shares and virtual time do not mind. --smoke runs the smallest of each.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from sweep_points import cpu_s_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "bench"
DEMO = ROOT / "experiments" / "sweeps" / "first.yaml"
DURATIONS = HERE / "task_durations_r1.csv"
WORKERS = ["64", "256", "1024", "4096", "10000"]
# Collectives and steps: what --dry-run counts.
SWEEPS = {"r1": ("990", "2856"), "planning": ("7518", "44712"), "30 x r1": ("30000", "86000")}


def lines(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(title, rows):
    print(f"\n{title}")
    keys = list(rows[0])
    cells = [[f"{row[key]:,}" if isinstance(row[key], (int, float)) else str(row[key]) for key in keys] for row in rows]
    widths = [max(len(key), *(len(row[i]) for row in cells)) for i, key in enumerate(keys)]
    for row in [keys, *cells]:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)), flush=True)


def measured(command, **more):
    """Wall and CPU seconds of a command and all it waited for, and the memory of the largest process in MB."""
    begin = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, said)
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Bench:
    def __init__(self, build, directory):
        self.build, self.directory, self.runs = build, pathlib.Path(directory), 0
        self.program = build / "manyworlds"

    def tool(self, name):
        return self.build / "tests" / name

    def fresh(self):
        self.runs += 1
        return self.directory / f"run{self.runs}"

    def planning(self, spec=HERE / "planning.yaml"):
        wall, cpu, memory = measured([self.program, "sweep", spec, "--dry-run"])
        table(f"planning {spec.name}", [{"wall_s": round(wall, 1), "cpu_s": round(cpu, 1), "memory_mb": round(memory)}])

    def dispatch(self, tasks=100_000, workers=("1", "16", "256", "1024")):
        rows = lines([self.tool("dispatch"), "--tasks", tasks, *workers])
        rows += lines([self.tool("dispatch"), "--tasks", tasks, "--journal", *workers])
        table("dispatch of empty tasks in one thread", rows)
        return rows

    def mpi(self, tasks=100_000, ranks=2):
        rows = []
        for words in (["-j", ranks], ["-j", ranks, "--in-process"]):
            run = self.fresh()
            _, cpu, _ = measured([self.tool("synthetic_farm"), "run", run, *words, f"tasks={tasks}", "us=0"],
                                 cwd=self.directory)
            status = json.loads((run / "status.json").read_text())
            assert status["state"] == "complete" and status["done"] == tasks, status
            rows.append({"run": " ".join(map(str, words)), "tasks": tasks, "elapsed_s": round(status["elapsed_s"], 3),
                         "tasks_per_s": round(tasks / status["elapsed_s"]), "cpu_us_per_task": round(1e6 * cpu / tasks, 1)})
        table("empty tasks through ranks, zygotes and pipes", rows)
        return rows

    def simulated(self, sweeps=SWEEPS, workers=WORKERS):
        for name, counts in sweeps.items():
            table(f"virtual time, tasks as many as {name} has",
                  lines([self.tool("simulated_farm"), DURATIONS, *counts, *workers]))

    def sweep(self, spec, ranks):
        run = self.fresh()
        wall, cpu, memory = measured([self.program, "sweep", spec, "-o", run, "-j", ranks, "--store", "none"])
        tasks_s = cpu_s_of(run)
        return {"spec": spec.name, "ranks": ranks, "wall_s": round(wall, 2), "cpu_s": round(cpu, 2),
                "tasks_s": round(tasks_s, 2), "overhead_percent": round(100 * (1 - tasks_s / cpu), 2),
                "memory_mb": round(memory)}

    def overhead(self, spec=DEMO):
        row = self.sweep(spec, 2)
        table("what no task took", [row])
        return row

    def two(self, spec=DEMO, rounds=1):
        """Alternating; two independent sweeps at once are what the machine gives to two workers at best."""
        rows = []
        for _ in range(rounds):
            one, two = self.sweep(spec, 1), self.sweep(spec, 2)
            begin = time.monotonic()
            at_once = [subprocess.Popen([str(self.program), "sweep", str(spec), "-o", str(self.fresh()), "-j", "1",
                                         "--store", "none"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                       for _ in range(2)]
            assert all(process.wait() == 0 for process in at_once)
            both = time.monotonic() - begin
            rows.append({"one_s": one["wall_s"], "two_s": two["wall_s"], "gain": round(one["wall_s"] / two["wall_s"], 3),
                         "two_sweeps_s": round(both, 2), "machine": round(2 * one["wall_s"] / both, 3)})
        table("one worker, two workers, and two sweeps of one worker each at once", rows)


def smoke(bench):
    tiny = ROOT / "experiments" / "sweeps" / "tiny.yaml"
    bench.planning(tiny)
    rows = bench.dispatch(4_000, ("1", "64"))
    # A look at every lease or worker per message made one worker 14 times as slow as 256.
    assert rows[0]["tasks_per_s"] > rows[1]["tasks_per_s"] / 4, rows
    bench.mpi(2_000)
    bench.simulated({"r1 by a tenth": ("99", "285")}, ["16"])
    overhead = bench.overhead(tiny)["overhead_percent"]
    assert 0 < overhead < 100, overhead


def main():
    parts = ["planning", "dispatch", "mpi", "simulated", "overhead", "two"]
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    words.add_argument("--smoke", action="store_true")
    words.add_argument("parts", nargs="*", metavar="PART")
    given = words.parse_args()
    unknown = set(given.parts) - set(parts)
    if unknown:
        words.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    with tempfile.TemporaryDirectory(prefix="manyworlds-farm-") as directory:
        bench = Bench(given.build.resolve(), directory)
        if given.smoke:
            smoke(bench)
            return 0
        for part in given.parts or parts:
            getattr(bench, part)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
