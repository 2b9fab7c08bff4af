"""How long a whole sweep will take, from a sample of its steps run for real.

    tests/bench/sweep_time.py build/manyworlds experiments/sweeps/r1.yaml --samples 24

Strata are the values of the axes named with --strata. Steps are drawn with replacement: a stratum with a probability
in proportion to the collectives that its steps run (what a step costs goes with that), a step of it evenly. Each is run
as a sweep of its own, without a store, on one process. The mean of CPU time over probability is the estimate (Hansen
and Hurwitz 1943), its standard error that of the mean. A collective counts in full for every step drawn, although a
sweep runs it once: the estimate is on the high side by that.
"""

import argparse
import itertools
import json
import random
import statistics
import tempfile

from sweep_points import axes_of, cpu_s_of, run_sweep, settings

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("sweep")
parser.add_argument("--samples", type=int, default=24)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--strata", nargs="+", default=["strategy.tp", "strategy.pp", "strategy.micro_batch"])
given = parser.parse_args()


def planned(chosen):
    """Distinct steps and collectives run by all steps of a part of the sweep; none where nothing of it is valid."""
    done = run_sweep(given.program, given.sweep, ["--dry-run", "--json"], chosen)
    if done.returncode != 0:
        assert "no valid point" in done.stderr, done.stderr
        return 0, 0
    keys = json.loads(done.stdout)["keys"]
    experiments = keys["steps"]["naive"]
    return keys["steps"]["unique"], keys["collectives"]["naive"] * keys["steps"]["unique"] / max(experiments, 1)


def cpu_of(chosen):
    with tempfile.TemporaryDirectory() as directory:
        done = run_sweep(given.program, given.sweep, ["--store", "none", "-j", "1", "-o", f"{directory}/run"], chosen)
        assert done.returncode == 0, done.stderr
        return cpu_s_of(f"{directory}/run")


axes = axes_of(given.sweep)
inner = [key for key in axes if key not in given.strata]
strata = []  # (chosen, steps, collectives run)
for values in itertools.product(*(axes[key] for key in given.strata)):
    chosen = dict(zip(given.strata, values))
    steps, collectives = planned(chosen)
    if steps > 0:
        strata.append((chosen, steps, collectives))
all_steps, all_collectives = sum(s for _, s, _ in strata), sum(c for _, _, c in strata)
print(f"{all_steps} distinct steps in {len(strata)} strata, {all_collectives:,.0f} collectives run by them", flush=True)

draw = random.Random(given.seed)
totals, times = [], []
for number in range(given.samples):
    chosen, steps, collectives = draw.choices(strata, weights=[c for _, _, c in strata])[0]
    while True:
        whole = {**chosen, **{key: draw.choice(axes[key]) for key in inner}}
        if planned(whole)[0] == 1:
            break
    times.append(cpu_of(whole))
    totals.append(times[-1] * steps * all_collectives / collectives)
    print(f"{times[-1]:8.2f} s  {' '.join(settings(whole))}", flush=True)

mean = statistics.mean(totals)
error = statistics.stdev(totals) / len(totals) ** 0.5
print(f"CPU time of the sweep: {mean:,.0f} s, standard error {error:,.0f} s ({100 * error / mean:.0f} %), from "
      f"{len(totals)} steps of {statistics.mean(times):.2f} s on average; on two cores {mean / 120:,.0f} minutes")
