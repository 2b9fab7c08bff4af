#!/usr/bin/env python3
"""The packet network on the peers' scenarios, as one table: completion times, link-hops, time, memory, instructions.

Three-tier non-blocking fat trees of 128 and 1,024 hosts, 400 Gb/s and 1 us a link, packets of 4,086 + 64 B, all flows
at t = 0 (tests/flows). Times are noisy on shared machines: the pointer chase says how slow memory is right now, and
instructions per link-hop (callgrind, else perf) do not depend on it. They are the difference of two shorter runs of
the same kind, so that reading the specification and building the fabric do not count; the shorter one of a permutation
still sends a quarter of the bytes, so that the first burst, in which all senders keep step, is not what is counted.

    python3 tests/bench/network.py [--build DIR] [--only perm128_4MB,incast32_2MB] [--transports static_window,...]
                                   [--plain] [--no-instructions] [--smoke]
    python3 tests/bench/network.py --seeds 100 [--only perm128_4MB,perm1024_1MB]
    python3 tests/bench/network.py --skipping [--full] [--gpus 1024]

--seeds N: instead of the table, whether htsim's RoCE+PFC lies in the central 90 % of N seeds of one random path per flow,
set up as htsim ran it: acks as packets, completion when the sender has the last of them, nothing but pauses holding
senders back, pauses above 15 payloads and resumption at 12. Ends with 1 if it does not. 100 seeds take three minutes:
    perm128_4MB over 100 seeds, 1.41 M link-hops (htsim: 1.41 M)
      mean: median 235.39 us, central 90 % 220.34 to 256.49; htsim 253.73: inside
      p99: median 427.24 us, central 90 % 367.25 to 518.11; htsim 427.54: inside
    perm1024_1MB over 100 seeds, 2.88 M link-hops (htsim: 2.88 M)
      mean: median 77.16 us, central 90 % 74.73 to 79.81; htsim 78.86: inside
      p99: median 136.99 us, central 90 % 125.79 to 160.19; htsim 145.40: inside
--skipping: another table, what remembering spares of a collective by fabric, placement and routing (skipping.cpp); with
--full also every packet of each case, and whether the answers are the same.
--reference: the packet engine and the plain one that is its oracle in one process, on 1,024 hosts (yardstick.cpp).
--smoke: the smallest case once per transport, checked against its floor; nothing is measured."""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
FLOWS = ROOT / "tests" / "flows"

RATE = 400e9  # bits per second
PAYLOAD, HEADER = 4086, 64


class Scenario:
    def __init__(self, hosts, bytes_each, smaller):
        self.hosts, self.bytes_each = hosts, bytes_each
        self.smaller = smaller  # the runs whose difference gives instructions send this part of each flow, and half


SCENARIOS = {
    "incast32_2MB": Scenario(128, 2_000_000, 1 / 4),
    "incast64_2MB": Scenario(128, 2_000_000, 1 / 8),
    "perm128_4MB": Scenario(128, 4_000_000, 1 / 2),
    "perm1024_1MB": Scenario(1024, 1_000_000, 1 / 2),
}

# htsim (Broadcom/csg-htsim, 2026-03) on one core of a 2.6 GHz Xeon with the same flows, fabric and packets; NDP and EQDS
# with 35-packet trimming queues, RoCE with PFC and one random path per flow. User CPU seconds, RSS in MB, link-hops in
# millions, FCT in us: min, mean, p99, max.
HTSIM = {
    "perm128_4MB": [("EQDS", 1.49, 15, 1.92, 87.10, 121.27, 135.50, 136.41),
                    ("NDP", 2.40, 26, 1.72, 86.79, 104.65, 113.72, 114.06),
                    ("RoCE+PFC", 0.73, 17, 1.41, 85.84, 253.73, 427.54, 432.55)],
    "perm1024_1MB": [("EQDS", 9.26, 128, 3.94, 24.79, 46.19, 47.91, 48.31),
                     ("RoCE+PFC", 3.95, 118, 2.88, 24.48, 78.86, 145.40, 155.11)],
    "incast32_2MB": [("EQDS", 0.10, 8, 0.30, 1315.4, 1328.4, 1331.2, 1331.2)],
    "incast64_2MB": [("EQDS", 0.21, 8, 0.60, 2629.5, 2647.8, 2652.4, 2652.4)],
}

TITLES = ["scenario", "transport", "min", "mean", "p50", "p99", "max us", "link-hops M", "CPU s", "RSS MB", "ns/hop",
          "instr/hop"]


# As htsim's RoCE ran (main_roce.cpp): its payload is the whole MTU, and its link-hops say that this was 4,150 B; its
# senders know no window; its ingress queues pause above 15 payloads and resume at 12.
ROCE = {"payload_bytes": 4150, "acks": "in_band", "window_bytes": 1 << 40, "pfc_xoff_bytes": 15 * 4150,
        "pfc_xon_bytes": 12 * 4150}


def specification(hosts, transport, options):
    half = {128: 4, 1024: 8}[hosts]  # k/2 of the k-ary tree
    given = {"payload_bytes": PAYLOAD, "header_bytes": HEADER, "seed": 1, **options}
    if transport != "eqds":  # which sprays
        given["routing"] = "ecmp_hash"
    listed = ", ".join(f"{key}: {value}" for key, value in given.items())
    return f"""\
name: bench
base:
  model: gpt3-125m
  cluster: {{gpu: h100_sxm, nodes: {hosts}, gpus_per_node: 1, nic_gbps: 400, nic_latency_us: 1}}
  topology: {{fat_tree: {{tiers: 3, leaf_hosts: {half}, pod_leaves: {half}}}}}
  transport: {{{transport}: {{{listed}}}}}
  strategy: {{tp: 1, pp: 1, micro_batch: 1, global_batch: {hosts}}}
"""


def scaled_flows(name, part, directory):
    """The scenario's flows with `part` of the bytes."""
    if part == 1:
        return FLOWS / f"{name}.csv"
    header, *rows = (FLOWS / f"{name}.csv").read_text().split()
    path = pathlib.Path(directory) / f"{name}-{part}.csv"
    cells = [row.split(",") for row in rows]
    path.write_text("\n".join([header] + [f"{s},{d},{int(int(b) * part)},{t}" for s, d, b, t in cells]) + "\n")
    return path


class Bench:
    def __init__(self, build, directory, words):
        self.program, self.directory, self.words = str(build / "manyworlds"), directory, words
        self.build = build

    def command(self, name, transport, part=1.0, options={}):
        spec = pathlib.Path(self.directory) / "spec.yaml"
        spec.write_text(specification(SCENARIOS[name].hosts, transport, options))
        return [self.program, "net", str(spec), "--flows", str(scaled_flows(name, part, self.directory)), "--json",
                *self.words]

    def run(self, *what, **more):
        """The summary of a run, with the whole process's CPU seconds and peak memory."""
        with tempfile.TemporaryFile() as out:
            child = subprocess.Popen(self.command(*what, **more), stdout=out)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode != 0:
                sys.exit(f"{' '.join(child.args)} ended with {child.returncode}")
            out.seek(0)
            summary = json.load(out)
        summary["process_cpu_s"] = used.ru_utime + used.ru_stime
        summary["rss_mb"] = used.ru_maxrss / 1024
        return summary

    def instructions(self, command):
        if shutil.which("valgrind"):
            done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                                  capture_output=True, text=True)
            found = re.search(r"Collected : (\d+)", done.stderr)
        else:
            done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", *command], capture_output=True,
                                  text=True)
            found = re.search(r"^(\d+),", done.stderr, re.MULTILINE)
        if done.returncode != 0 or not found:
            sys.exit(f"no instructions counted: {done.stderr[-500:]}")
        return int(found.group(1)), json.loads(done.stdout)["link_hops"]

    def instructions_per_hop(self, name, transport):
        part = SCENARIOS[name].smaller
        (more, hops), (less, fewer) = (self.instructions(self.command(name, transport, p)) for p in (part, part / 2))
        return (more - less) / (hops - fewer)

    def transports(self):
        text = subprocess.run([self.program, "list", "transports"], capture_output=True, text=True, check=True).stdout
        return re.findall(r"^  (\w+)  ", text, re.MULTILINE)

    def memory_ns(self):
        chase = self.build / "tests" / "pointer_chase"
        return subprocess.run([str(chase)], capture_output=True, text=True, check=True).stdout.split()


def times_us(figures):
    return [f"{figures[key] / 1e6:.2f}" for key in ("min", "mean", "p50", "p99", "max")]


def sender_row(name, transport, summary):
    """The same run, completion counted as htsim counts it: when the sender has the last acknowledgement."""
    return [name, f"{transport}, at sender", *times_us(summary["acknowledged_ps"]), *["-"] * 5]


def row(name, transport, summary, instructions):
    fct = times_us(summary["completion_ps"])
    return [name, transport, *fct, f"{summary['link_hops'] / 1e6:.2f}", f"{summary['process_cpu_s']:.2f}",
            f"{summary['rss_mb']:.0f}", f"{summary['ns_per_link_hop']:.1f}",
            "-" if instructions is None else f"{instructions:.0f}"]


def peer_row(name, peer, cpu_s, rss, hops, least, mean, p99, most):
    return [name, f"htsim {peer}", f"{least:.2f}", f"{mean:.2f}", "-", f"{p99:.2f}", f"{most:.2f}", f"{hops:.2f}",
            f"{cpu_s:.2f}", str(rss), f"{cpu_s * 1e3 / hops:.1f}", "-"]


def table(rows):
    widths = [max(len(line[i]) for line in [TITLES, *rows]) for i in range(len(TITLES))]
    for line in [TITLES, *rows]:
        print("  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))))


def floor_us(name):
    """What the last link of an incast needs at least."""
    scenario = SCENARIOS[name]
    senders = len((FLOWS / f"{name}.csv").read_text().split()) - 1
    packets = -(-scenario.bytes_each // PAYLOAD)
    return senders * (scenario.bytes_each + packets * HEADER) * 8 / RATE * 1e6


def seeds(bench, names, count):
    """Over seeds of the paths: where RoCE's rows lie among our runs of the same. Whether all are in the central 90 %."""
    inside = True
    for name in names:
        for _, _, _, hops, _, mean, p99, _ in [peer for peer in HTSIM[name] if peer[0] == "RoCE+PFC"]:
            runs = [bench.run(name, "static_window", options={**ROCE, "seed": seed}) for seed in range(1, count + 1)]
            print(f"{name} over {count} seeds, {runs[0]['link_hops'] / 1e6:.2f} M link-hops (htsim: {hops:.2f} M)")
            for what, theirs in (("mean", mean), ("p99", p99)):
                ours = sorted(run["acknowledged_ps"][what] / 1e6 for run in runs)
                low, high = ours[count // 20], ours[count - 1 - count // 20]
                verdict = "inside" if low <= theirs <= high else "OUTSIDE"
                print(f"  {what}: median {statistics.median(ours):.2f} us, central 90 % {low:.2f} to {high:.2f}; "
                      f"htsim {theirs:.2f}: {verdict}", flush=True)
                inside = inside and verdict == "inside"
    return inside


def skipping(bench, *words):
    return subprocess.run([str(bench.build / "tests" / "skipping"), *words]).returncode


def yardstick(bench, name, part=1.0, least=0.0):
    flows = scaled_flows(name, part, bench.directory)
    return subprocess.run([str(bench.build / "tests" / "yardstick"), "--flows", str(flows), "--hosts",
                           str(SCENARIOS[name].hosts), "--least", str(least)]).returncode


def smoke(bench):
    # The packet engine is more than five times as fast as the plain one; half of that tells noise from a loss.
    assert yardstick(bench, "perm128_4MB", 1 / 8, least=2.5) == 0
    assert skipping(bench, "--gpus", "64", "--chunk", "4096", "--full") == 0
    name = "incast32_2MB"
    transports = bench.transports()
    assert "static_window" in transports, transports
    for transport in transports:
        summary = bench.run(name, transport)
        assert summary["flows"] == 32, summary["flows"]
        assert summary["completion_ps"]["max"] / 1e6 >= floor_us(name), (transport, summary["completion_ps"])
        assert summary["link_hops"] >= 32 * 490 * 2, summary["link_hops"]
        assert summary["links"][0]["link"].endswith("->gpu0"), summary["links"][0]  # the link they all want
        least = 0.9 if transport == "static_window" else 0  # others may hold their senders back for long
        assert least < summary["links"][0]["busy_share"] <= 1, summary["links"][0]
        assert ("acknowledged_ps" in summary) == (transport == "eqds"), transport
    seeds(bench, ["perm128_4MB"], 2)
    assert all(float(ns) > 0 for ns in bench.memory_ns())


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    words.add_argument("--only", default=",".join(SCENARIOS))
    words.add_argument("--transports", default="")
    words.add_argument("--plain", action="store_true")
    words.add_argument("--no-instructions", action="store_true")
    words.add_argument("--seeds", type=int, default=0)
    words.add_argument("--skipping", action="store_true")
    words.add_argument("--full", action="store_true")
    words.add_argument("--gpus", type=int, default=1024)
    words.add_argument("--reference", action="store_true")
    words.add_argument("--smoke", action="store_true")
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="manyworlds-bench-") as directory:
        bench = Bench(given.build, directory, ["--plain"] if given.plain else [])
        if given.smoke:
            return smoke(bench)
        if given.reference:
            return yardstick(bench, "perm1024_1MB")
        if given.skipping:
            return skipping(bench, "--gpus", str(given.gpus), *(["--full"] if given.full else []))
        if given.seeds > 0:
            return 0 if seeds(bench, given.only.split(","), given.seeds) else 1
        transports = given.transports.split(",") if given.transports else bench.transports()
        print("a load that misses caches takes {} ns in 8 MB, {} ns in 64 MB".format(*bench.memory_ns()))
        rows = []
        for name in given.only.split(","):
            for transport in transports:
                instructions = None if given.no_instructions else bench.instructions_per_hop(name, transport)
                summary = bench.run(name, transport)
                rows.append(row(name, transport, summary, instructions))
                if "acknowledged_ps" in summary:
                    rows.append(sender_row(name, transport, summary))
            rows += [peer_row(name, *peer) for peer in HTSIM[name]]
        table(rows)
        for name in given.only.split(","):
            if name.startswith("incast"):
                print(f"floor of {name}: {floor_us(name):.1f} us")
        print("times are those at which the receiver has all; htsim's, and rows \"at sender\" beside them, those at which the\n"
              "sender has the last acknowledgement")
        print("htsim: on another machine of the same class (compare ns/hop only as far as the first line allows), with acks\n"
              "as packets; where a transport's acks occupy no link its link-hops are fewer: compare CPU s too")
    return 0


if __name__ == "__main__":
    sys.exit(main())
