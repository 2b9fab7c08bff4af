"""How long the tasks of a sweep run, from a sample of its steps run for real: what the simulated farm draws from.

    tests/bench/task_durations.py build/release experiments/sweeps/r1.yaml --samples 66 > task_durations_r1.csv

Experiments are drawn evenly from those that fit into memory; each is run as a sweep of its own on one process, without
a store, for at most --limit seconds. CPU time of a task is part of its result, so it is read from the journal. Prints
one row for each task: its kind, what the planner expects of it, CPU seconds, and how it ended; a draw that did not end
counts as one step of the limit, marked `cut`.
"""

import argparse
import glob
import itertools
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

from sweep_points import axes_of, cpu_s_of, run_sweep, settings

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build", type=pathlib.Path)
parser.add_argument("sweep")
parser.add_argument("--samples", type=int, default=66)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--limit", type=float, default=150, help="seconds of wall time for one draw")
given = parser.parse_args()

READER = pathlib.Path(__file__).parents[1] / "io" / "read_records.py"
CPU_OF_COLLECTIVE = 3 * 8  # behind three counts; see encode(CollectiveResult)


def costs_of(chosen):
    """What the planner expects of the collectives, in the order in which one worker runs them, and of the step."""
    told = subprocess.run([given.build / "tests" / "task_costs", given.sweep, *settings(chosen)], capture_output=True,
                          text=True, check=True)
    rows = [line.split(",") for line in told.stdout.split()]
    return (sorted((float(cost) for kind, cost in rows if kind == "collective"), reverse=True),
            [float(cost) for kind, cost in rows if kind == "step"][0])


def collectives_of(run):
    """CPU seconds of the collectives in a journal; the step is its last record."""
    payloads = []
    for path in sorted(glob.glob(f"{run}/journal/*.journal")):
        told = subprocess.run([sys.executable, str(READER), path], capture_output=True, text=True, check=True)
        payloads += [bytes.fromhex(record["payload"]) for record in json.loads(told.stdout)["records"]]
    return [struct.unpack_from("<d", payload, CPU_OF_COLLECTIVE)[0] for payload in payloads[:-1]]


program = given.build / "manyworlds"
axes = axes_of(given.sweep)
points = list(itertools.product(*axes.values()))
random.Random(given.seed).shuffle(points)
drawn = 0
print("# kind,cost,cpu_s,how", flush=True)
for point in points:
    if drawn == given.samples:
        break
    chosen = dict(zip(axes, point))
    told = run_sweep(program, given.sweep, ["--dry-run", "--json"], chosen)
    if told.returncode != 0 or json.loads(told.stdout)["keys"]["steps"]["unique"] != 1:
        continue
    drawn += 1
    costs, cost = costs_of(chosen)
    with tempfile.TemporaryDirectory() as directory:
        run = f"{directory}/run"
        try:
            done = run_sweep(program, given.sweep, ["--store", "none", "-j", "1", "-o", run], chosen, given.limit)
        except subprocess.TimeoutExpired:
            print(f"step,{cost:.0f},{given.limit},cut", flush=True)
            continue
        assert done.returncode == 0, done.stderr
        collectives = collectives_of(run)
        assert len(collectives) == len(costs), (chosen, len(collectives), costs)
        for seconds, expected in zip(collectives, costs):
            print(f"collective,{expected:.0f},{seconds:.6f},ended")
        print(f"step,{cost:.0f},{cpu_s_of(run) - sum(collectives):.6f},ended", flush=True)
