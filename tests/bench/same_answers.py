#!/usr/bin/python3
"""Whether two builds of the program give the same answers: for changes that must not change any.

    tests/bench/same_answers.py OLD NEW [--quick]

OLD and NEW are manyworlds programs. Both run two sweeps of experiments/sweeps, 40 drawn layouts of a model with experts packet
by packet, and every algorithm of every collective on three fabrics under two transports; step times are compared to the
picosecond, columns byte by byte. --quick leaves the larger sweep out. It ends in 1 where anything differs.
"""

import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SWEEPS = {
    "tiny": ["experiments/sweeps/tiny.yaml"],
    "drawn": ["experiments/sweeps/twenty_keys.yaml", "--set", "sample.experiments=40", "--set", "cluster.nodes=4",
              "--set", "model={like: mixtral-8x7b, layers: 16}", "--set", "strategy.global_batch=32"],
    "first": ["experiments/sweeps/first.yaml"],
}
FABRICS = ["topology=rail_optimized", "topology={fat_tree: {leaf_hosts: 4, oversubscription: 2}}",
           "topology={dragonfly: {}}"]
TRANSPORTS = ["transport=static_window", "transport=dcqcn"]
SPEC = "base: {cluster: {gpu: h100_sxm, nodes: 4, nic_gbps: 400}}\nassume: 2021\n"


def output(*words):
    done = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout if done.returncode in (0, 3) else f"exit {done.returncode}: {done.stderr}"


def table(program, words, folder):
    """The results of a sweep as CSV."""
    said = output(program, "sweep", *words, "-o", folder, "--store", "none")
    return output(program, "export", folder, "--csv") if (folder / "results.h5").exists() else said


def collectives(program):
    """(algorithm, kind) of everything that `list collectives` names."""
    algorithm = None
    for line in output(program, "list", "collectives").splitlines():
        if name := re.match(r"  (\w+)  ", line):
            algorithm = name[1]
        elif kinds := re.match(r"\s+of: (.*)", line):
            yield from ((algorithm, kind) for kind in kinds[1].split(", "))


def times(program, spec):
    for (algorithm, kind), fabric, transport, size in itertools.product(collectives(program), FABRICS, TRANSPORTS,
                                                                        ["64KiB", "4MiB"]):
        words = [kind, algorithm, fabric, transport, size]
        said = output(program, "net", spec, "--collective", kind, "--algorithm", algorithm, "--bytes", size, "--json",
                      "--set", fabric, "--set", transport)
        try:
            yield " ".join(words), json.loads(said)["completion_ps"]
        except (json.JSONDecodeError, KeyError):
            yield " ".join(words), said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    programs = [pathlib.Path(given.old).resolve(), pathlib.Path(given.new).resolve()]
    differences = 0
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        for name, words in SWEEPS.items():
            if given.quick and name == "first":
                continue
            old, new = (table(program, words, directory / f"{name}-{i}") for i, program in enumerate(programs))
            same = old == new and old.count("\n") > 2
            differences += not same
            print(f"sweep {name}: {max(old.count(chr(10)) - 1, 0)} experiments, {'same' if same else 'DIFFERENT'}", flush=True)
            if not same:
                changed = [f"  {a}\n  {b}" for a, b in zip(old.splitlines(), new.splitlines()) if a != b]
                print("\n".join(changed[:3]) or f"  {old[:300]!r}\n  {new[:300]!r}")
        spec = directory / "net.yaml"
        spec.write_text(SPEC)
        old, new = (dict(times(program, spec)) for program in programs)
        changed = [what for what in old if old[what] != new.get(what)]
        refused = sum(isinstance(value, str) for value in old.values())
        differences += len(changed) + (len(old) != len(new))
        print(f"collectives: {len(old)} combinations ({refused} refused by both), {len(changed)} different")
        for what in changed[:5]:
            print(f"  {what}: {old[what]} and {new.get(what)}")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
