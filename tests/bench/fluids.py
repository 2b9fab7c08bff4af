"""How far fluid and analytic steps are from packets, and what each costs, on drawn steps whose paths are hashed.

    tests/bench/fluids.py build/release/manyworlds --nodes 32 64 --draws 15
    tests/bench/fluids.py build/release/manyworlds --nodes 8 16 --draws 8 --routing spray adaptive --broken

Draws models, layouts, oversubscription and transports on fat trees with `ecmp_hash`, or every draw with each routing that
is given, on trees of which, if asked for, every second has a cable down. Runs each at every fidelity with one process, and
prints a Markdown table. A draw whose packets do not end within --limit seconds is counted and left out.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("--nodes", type=int, nargs="+", default=[32, 64])
parser.add_argument("--draws", type=int, default=15)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--limit", type=int, default=300)
parser.add_argument("--routing", nargs="+", default=["ecmp_hash"])
parser.add_argument("--broken", action="store_true")
given = parser.parse_args()
draw = random.Random(given.seed)

MODELS = {"llama3-8b": [(1, 1), (2, 1), (2, 2), (4, 2)], "gpt3-13b": [(2, 2), (4, 2), (4, 4)],
          "llama3-70b": [(4, 4), (8, 4), (8, 2)], "gpt3-175b": [(8, 8), (8, 16), (4, 16)]}
# HPCC needs one path.
TRANSPORTS = ["dcqcn", "hpcc" if given.routing == ["ecmp_hash"] else "dctcp", "swift", "static_window"]


def document(nodes):
    model = draw.choice(list(MODELS))
    tp, pp = draw.choice(MODELS[model])
    micro_batches = draw.choice([2, 4]) * pp
    return {"name": "drawn", "base": {
        "model": model,
        "cluster": {"gpu": "h200_sxm", "nodes": nodes, "gpus_per_node": 8, "nic_gbps": draw.choice([200, 400])},
        "topology": {"fat_tree": {"leaf_hosts": draw.choice([16, 32]), "oversubscription": draw.choice([1, 2, 4])}},
        "transport": {draw.choice(TRANSPORTS): {}},
        "strategy": {"tp": tp, "pp": pp, "micro_batch": 1, "global_batch": nodes * 8 // (tp * pp) * micro_batches,
                     "recompute": "full"}}}


def run(path, fidelity):
    """The step time, and CPU seconds; None if it does not end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        done = subprocess.run([given.program, "run", path, "--json", "--set", f"fidelity={fidelity}"], capture_output=True,
                              text=True, timeout=given.limit)
    except subprocess.TimeoutExpired:
        return None
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return answer["step_time_s"], answer.get("fluid_step_error"), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def label(base):
    (transport, options), = base["transport"].items()
    routing = "" if options["routing"] == "ecmp_hash" else f", {options['routing']}"
    return (f"{base['model']} tp {base['strategy']['tp']} pp {base['strategy']['pp']}, {base['cluster']['nic_gbps']}G, "
            f"{base['topology']['fat_tree']['oversubscription']}:1{', one down' if 'faults' in base else ''}, "
            f"{transport}{routing}")


print("| GPUs | step | packets | fluid | its own error | analytic | CPU s: packets | fluid |\n"
      "|---|---|---|---|---|---|---|---|", flush=True)
errors = {"fluid": [], "analytic": []}
known = within = 0  # steps of fluids that say their error, and that are off by no more
unfinished = 0
with tempfile.TemporaryDirectory() as directory:
    for nodes in given.nodes:
        for number in range(given.draws * len(given.routing)):
            if number % len(given.routing) == 0:
                step = document(nodes)
                if given.broken and number // len(given.routing) % 2 == 1:
                    step["base"]["faults"] = {"down": "leaf0-spine0"}
            (options,) = step["base"]["transport"].values()
            options["routing"] = given.routing[number % len(given.routing)]
            path = f"{directory}/drawn.yaml"
            with open(path, "w") as file:
                json.dump(step, file)
            packets = run(path, "packet")
            if packets is None:
                unfinished += 1
                continue
            others = {fidelity: run(path, fidelity) for fidelity in errors}
            shown = []
            for fidelity, (time, said, _) in others.items():
                errors[fidelity].append(time / packets[0] - 1)
                shown.append(f"{100 * errors[fidelity][-1]:+.2f} %")
                if fidelity == "fluid":
                    known += said is not None
                    within += said is not None and abs(errors[fidelity][-1]) <= said
                    shown.append("unknown" if said is None else f"{100 * said:.2f} %")
            print(f"| {8 * nodes} | {label(step['base'])} | {packets[0]:.3f} s | {' | '.join(shown)} | {packets[2]:.1f} | "
                  f"{others['fluid'][2]:.2f} |", flush=True)
for fidelity, found in errors.items():
    print(f"{fidelity}: mean {100 * statistics.mean(map(abs, found)):.2f} %, largest {100 * max(map(abs, found)):.2f} %, "
          f"bias {100 * statistics.mean(found):+.2f} %, {len(found)} steps")
print(f"{within} of {known} steps of fluids that say their error are off by no more")
print(f"{unfinished} did not end in {given.limit} s")
