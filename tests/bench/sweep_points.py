"""Points of a sweep for benchmarks that draw some: the values of its axes, the program at one of them, its CPU time."""

import json
import subprocess

import h5py
import yaml


def axes_of(sweep):
    """By key, the values of each axis, ranges of whole numbers counted out."""
    with open(sweep) as file:
        return {key: values_of(axis) for key, axis in yaml.safe_load(file)["axes"].items()}


def values_of(axis):
    if isinstance(axis, list):
        return axis
    first, last, step = axis["range"]
    values = [first]
    while values[-1] <= last:
        values.append(values[-1] * int(step[1:]) if step[0] == "*" else values[-1] + int(step[1:]))
    return values[:-1]


def settings(chosen):
    return [f"{key}={json.dumps(value)}" for key, value in chosen.items()]


def run_sweep(program, sweep, words, chosen, limit=None):
    """The part of the sweep where each axis in `chosen` has that value, for at most `limit` seconds."""
    sets = [word for setting in settings(chosen) for word in ("--set", setting)]
    return subprocess.run([program, "sweep", sweep, *words, *sets], capture_output=True, text=True, timeout=limit)


def cpu_s_of(run):
    """Of all tasks of a run that is over."""
    with h5py.File(f"{run}/results.h5") as results:
        return float(results["provenance"].attrs["cpu_s"])
