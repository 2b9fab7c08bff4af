"""`net --model astra-sim` gives ASTRA-sim's own results, and docs/model/collectives.md lists ours beside them.

The table was measured with ASTRA-sim 2.x (analytical backends, ring algorithm): 1 MiB, links of 50 GB/s (their GB is
2^30) and 500 ns, 4 splits, 1 active chunk, endpoint delay 10 ns, memory 1600 GB/s. all_gather counts 1 MiB for each
rank of input; ours counts what a rank has in the end, so it is asked for n MiB.

`python3 astra_sim.py --write` puts the table of today's runs into docs/model/collectives.md."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("MANYWORLDS_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAM = str(pathlib.Path(os.environ.get("MANYWORLDS_BUILD_DIR", ROOT / "build")) / "manyworlds")
PAGE = ROOT / "docs" / "model" / "collectives.md"

# Nanoseconds for 4, 8 and 16 members, by collective: on a ring or fully connected, over a switch (congestion-unaware),
# over a switch (congestion-aware).
MEASURED = {
    "all_reduce": [(43000, 64440, 99640), (55000, 92440, 159640), (84280, 126600, 196240)],
    "all_gather": [(64744, 151016, 323560), (70744, 165016, 353560), (129328, 301712, 646480)],
    "reduce_scatter": [(22240, 33080, 50740), (28240, 47080, 80740), (42880, 64160, 99040)],
    "all_to_all": [(41560, 125480, 391240), (53560, 181480, 631240), (82840, 249800, 777640)],
}
MEMBERS = (4, 8, 16)
GBPS = 50 * 2**30 * 8 / 1e9  # of a link


def switch(n):
    """n GPUs, each with a NIC on one switch."""
    return [f"cluster.nodes={n}", "cluster.gpus_per_node=1", f"cluster.nic_gbps={GBPS!r}", "topology=one_switch"]


def connected(n):
    """n GPUs in one node, each with a link to every other."""
    return [f"cluster.gpus_per_node={n}", f"cluster.gpu.scale_up_domain={n}", "cluster.gpu.scale_up=full_mesh",
            f"cluster.gpu.scale_up_gb_per_s={GBPS / 8 * (n - 1)!r}", "cluster.gpu.scale_up_latency_us=0.5",
            "cluster.nic_gbps=1", "topology=one_switch"]


def run(kind, n, fabric, *words):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as spec:
        spec.write("base:\n  model: gpt3-125m\n  cluster: {gpu: a100_40, nodes: 1, gpus_per_node: 8}\n"
                   "  strategy: {tp: 1, global_batch: 16}\nassume: 2021\n")
        spec.flush()
        sets = [word for each in ["cluster.nic_latency_us=0.5", *fabric(n)] for word in ("--set", each)]
        mebibytes = n if kind == "all_gather" else 1
        done = subprocess.run([PROGRAM, "net", spec.name, *sets, "--collective", kind, "--bytes", f"{mebibytes}MiB",
                               "--model", "astra-sim", *words], capture_output=True, text=True)
    return done


def times(kind, n, fabric, *words):
    done = run(kind, n, fabric, "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def page_table():
    """ASTRA-sim's figures and ours, in microseconds, as docs/model/collectives.md shows them."""
    lines = ["| collective | members | fully connected: ASTRA-sim | packets | switch: unaware | aware | packets |",
             "|---|---|---|---|---|---|---|"]
    for kind in MEASURED:
        for n in MEMBERS:
            direct, switched = (times(kind, n, fabric, "--with-packets") for fabric in (connected, switch))
            figures = [direct["congestion_unaware_ps"], direct["packet_ps"], switched["congestion_unaware_ps"],
                       switched["congestion_aware_ps"], switched["packet_ps"]]
            lines.append(f"| {kind} | {n} | " + " | ".join(f"{ps / 1e6:.2f}" for ps in figures) + " |")
    return "\n".join(lines) + "\n"


BLOCK = re.compile(r"(?<=<!-- astra-table -->\n).*?(?=<!-- /astra-table -->)", re.DOTALL)


class AstraSim(unittest.TestCase):
    def test_every_measured_result_is_met_to_the_nanosecond(self):
        cells = 0
        for kind, (direct, unaware, aware) in MEASURED.items():
            for column, n in enumerate(MEMBERS):
                with self.subTest(kind=kind, members=n):
                    on_mesh, on_switch = times(kind, n, connected), times(kind, n, switch)
                    self.assertEqual(on_mesh["hops"], 1)
                    self.assertEqual(on_mesh["congestion_unaware_ps"], 1000 * direct[column])
                    self.assertEqual(on_mesh["congestion_aware_ps"], 1000 * direct[column])
                    self.assertEqual(on_switch["hops"], 2)
                    self.assertEqual(on_switch["congestion_unaware_ps"], 1000 * unaware[column])
                    self.assertEqual(on_switch["congestion_aware_ps"], 1000 * aware[column])
                    cells += 3
        self.assertEqual(cells, 36)

    def test_its_own_options_count(self):
        # One split: 10 + 3 (2 (500 + 262144 / 53.687091 + 10) + 3 floor(262144 / 1600)) rounded down where it rounds.
        one = times("all_reduce", 4, connected, "--astra-splits", "1")
        self.assertEqual(one["congestion_unaware_ps"], 1000 * (10 + 3 * (2 * (5382 + 10) + 3 * 163)))
        slow = times("reduce_scatter", 4, connected, "--astra-endpoint-delay-ns", "0", "--astra-memory-gb-per-s", "16")
        self.assertEqual(slow["congestion_unaware_ps"], 1000 * 4 * 3 * (1720 + 3 * 4096))

    def test_what_it_cannot_say_is_refused(self):
        two_nodes = lambda n: ["cluster.nodes=2", "cluster.gpus_per_node=4", "cluster.nic_gbps=200"]
        for wrong, words in [
            (run("all_reduce", 8, two_nodes), ["GPU 3", "equal links"]),
            (run("all_reduce", 8, two_nodes, "--algorithm", "two_level"), ["GPU 3"]),
            (run("all_reduce", 8, switch, "--astra-splits", "0"), ["--astra-splits 0", "splits", "1"]),
            (run("all_reduce", 8, switch, "--astra-splits", "1000000"), ["1048576 bytes", "1000000 splits"]),
            (run("all_reduce", 8, switch, "--csv"), ["--csv", "astra-sim"]),
            (run("all_reduce", 8, switch, "--plain"), ["--with-packets"]),
            (run("all_reduce", 8, switch, "--model", "packet", "--astra-splits", "4"), ["--astra-splits", "belongs"]),
        ]:
            self.assertEqual(wrong.returncode, 2, wrong.stdout)
            for word in words:
                self.assertIn(word, wrong.stderr)

    def test_no_experiment_can_select_it(self):
        schema = subprocess.run([PROGRAM, "schema"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("astra", schema)

    def test_the_page_shows_what_runs_give(self):
        shown = BLOCK.search(PAGE.read_text())
        self.assertIsNotNone(shown, "docs/model/collectives.md has no astra-table")
        self.assertEqual(shown.group(), page_table(), "renew it with: python3 tests/end_to_end/astra_sim.py --write")


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(BLOCK.sub(lambda _: page_table(), PAGE.read_text()))
    else:
        unittest.main()
