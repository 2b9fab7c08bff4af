"""The store through the whole program: what is computed again and what is not, damage, eviction, and who shares it."""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import h5py

from program import PATIENCE_S, PROGRAM, ROOT, SWEEPS, run, xxh3

TINY = SWEEPS / "tiny.yaml"

# Two fabrics' worth of collectives: those of tp stay inside a node, those of dp cross the fabric.
CROSSING = """
name: crossing
base:
  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}
  cluster: {gpu: a100_40, nodes: 4, gpus_per_node: 4, nic_gbps: 200}
  topology: {fat_tree: {leaf_hosts: 4, oversubscription: 1}}
  strategy: {global_batch: 16}
  collectives: {all_reduce: halving_doubling}
axes:
  strategy.tp: [2, 4]
  strategy.micro_batch: [1, 2]
assume: 2021
"""

# Collectives that meet on the links of a narrow spine.
CONTENDED = """
name: contended
base:
  model: gpt3-1.3b
  cluster: {gpu: h100_sxm, nodes: 4, gpus_per_node: 4, nic_gbps: 200}
  topology: {fat_tree: {leaf_hosts: 4, oversubscription: 4}}
  transport: {dcqcn: {routing: ecmp_hash}}
  strategy: {global_batch: 32, pp: 2}
axes:
  strategy.tp: [1, 2]
  strategy.micro_batch: [1, 2]
assume: 2021
"""


class Stores(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-store-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def run_program(self, *words, expect=0):
        return run(*words, directory=self.directory, expect=expect)

    def sweep(self, spec, run, *words, store="store"):
        done = self.run_program("sweep", spec, "-o", run, "-j", 1, "--in-process", "--store", store, *words)
        with h5py.File(self.directory / run / "results.h5") as file:
            return done, dict(file["provenance"].attrs)

    def store(self, *words, expect=0):
        return json.loads(self.run_program("store", *words, "--store", "store", "--json", expect=expect).stdout)

    def assert_same(self, *runs):
        for other in runs[1:]:
            self.assertEqual(self.run_program("diff", runs[0], other).stdout, "same results\n")

    def collectives(self, run):
        with h5py.File(self.directory / run / "results.h5") as file:
            table = file["subsimulations/collectives"]
            return dict(zip(table["key"][:], zip(table["parameters"][:], table["result_ps"][:])))

    def keys(self, run):
        """Keys of every task of a run, read from its journal without any code of ours: what came from the store is there too."""
        keys = set()
        for journal in (self.directory / run / "journal").glob("*.journal"):
            done = subprocess.run(["/usr/bin/python3", ROOT / "tests/io/read_records.py", journal], check=True,
                                  capture_output=True, text=True)
            keys |= {tuple(record["digest"]) for record in json.loads(done.stdout)["records"]}
        return keys

    def segments(self):
        return sorted((self.directory / "store").glob("*/*.segment"))

    def test_another_oversubscription_computes_only_what_crosses_the_fabric(self):
        (self.directory / "crossing.yaml").write_text(CROSSING)
        _, before = self.sweep("crossing.yaml", "before")
        narrow = ["--set", "topology={fat_tree: {leaf_hosts: 4, oversubscription: 4}}"]
        _, after = self.sweep("crossing.yaml", "after", *narrow)
        # What each run needs is in its journal; what both need is in the store, and nothing else.
        old, new = self.keys("before"), self.keys("after")
        self.assertEqual((before["tasks_from_store"], before["tasks_computed"]), (0, len(old)))
        self.assertEqual((after["tasks_from_store"], after["tasks_computed"]), (len(old & new), len(new - old)))
        # The steps are others, and so are the collectives of dp, over 8 or 4 GPUs of all nodes, which meet a narrower
        # spine. Those of tp stay in a node of 4.
        self.assertGreater(len(new - old), after["tasks_steps"])
        inside = {parameters for parameters, _ in self.collectives("after").values()}
        inside &= {parameters for parameters, _ in self.collectives("before").values()}
        self.assertTrue(any(b" n=2 " in parameters for parameters in inside), inside)
        self.assertGreaterEqual(after["tasks_from_store"], len(inside))
        _, alone = self.sweep("crossing.yaml", "alone", *narrow, store="none")
        self.assertEqual(alone["tasks_from_store"], 0)
        self.assert_same("after", "alone")

    def test_components_that_one_sweep_has_simulated_are_there_for_the_next(self):
        (self.directory / "contended.yaml").write_text(CONTENDED)
        _, first = self.sweep("contended.yaml", "first")
        components = sorted((self.directory / "store/components").glob("*/*.segment"))
        self.assertTrue(components)
        more = ["--set", "strategy.global_batch=64"]
        _, alone = self.sweep("contended.yaml", "alone", *more, store="none")
        _, after = self.sweep("contended.yaml", "after", *more)
        self.assert_same("alone", "after")
        self.assertLess(after["link_hops_simulated"], alone["link_hops_simulated"] * 3 / 4)
        # Damaged ones are simulated again, and the store's own words tell of them.
        for segment in components:
            bytes_ = bytearray(segment.read_bytes())
            for at in range(200, len(bytes_), 500):
                bytes_[at] ^= 0x10
            segment.write_bytes(bytes_)
        self.assertTrue(self.store("verify", expect=3)["damaged"])
        self.assertIn("components of flows, of all builds: ", self.run_program("store", "--store", "store").stdout)
        _, damaged = self.sweep("contended.yaml", "damaged", "--set", "strategy.global_batch=128")
        _, other = self.sweep("contended.yaml", "other", "--set", "strategy.global_batch=128", store="none")
        self.assert_same("damaged", "other")
        self.store("prune", "--limit", "1KiB")
        self.assertEqual(sorted((self.directory / "store/components").glob("*/*.segment")), [])

    def test_a_cold_a_warm_and_a_foreign_store_give_one_answer(self):
        _, cold = self.sweep(TINY, "cold")
        _, warm = self.sweep(TINY, "warm")
        self.assertEqual((warm["tasks_computed"], warm["tasks_from_store"]), (0, cold["tasks_computed"]))
        # Another build's header in our folder: whole records, which mean nothing to this build.
        segment, = self.segments()
        header = b"MWRECLOG" + struct.pack("<II", 1, 64) + b"0" * 64
        segment.write_bytes(header + struct.pack("<Q", xxh3(header)) + segment.read_bytes()[len(header) + 8:])
        self.assertEqual(self.store("verify")["records"], cold["tasks_computed"])
        _, foreign = self.sweep(TINY, "foreign")
        self.assertEqual((foreign["tasks_computed"], foreign["tasks_from_store"]), (cold["tasks_computed"], 0))
        _, none = self.sweep(TINY, "none", store="none")
        self.assertEqual(none["tasks_from_store"], 0)
        self.assert_same("cold", "warm", "foreign", "none")

    def test_what_the_store_tells_is_what_the_runs_did(self):
        _, figures = self.sweep(TINY, "run")
        told = self.store("stats")
        build, = told["builds"]
        self.assertTrue(build["this_build"])
        self.assertEqual(build["build"], figures["build"].decode())
        self.assertEqual((build["records"], build["segments"]), (figures["tasks_computed"], 1))
        self.assertEqual(build["bytes"], self.segments()[0].stat().st_size)
        self.assertLess(abs(build["last_used"] - time.time()), 600)
        self.assertIn("(this one)", self.run_program("store", "--store", "store").stdout)
        self.assertEqual(self.store("verify")["records"], figures["tasks_computed"])
        self.assertEqual(self.store("prune", "--limit", "1GiB")["segments"], 0)
        self.assertEqual(self.store("prune", "--limit", "1KiB")["segments"], 1)
        self.assertEqual(self.segments(), [])
        # A run keeps to the limit by itself.
        self.sweep(TINY, "again", "--store-limit", "1KiB")
        self.assertEqual(self.segments(), [])
        self.assert_same("run", "again")
        for words, said in ((["stat"], "did you mean 'stats'"), (["--limit", "1GiB"], "--limit"),
                            (["prune", "--limit", "much"], "much"), (["--store", "nowhere"], "nowhere")):
            self.assertIn(said, self.run_program("store", *words, expect=2).stderr)
        self.run_program("store")  # the default one may not be there yet

    def test_a_flipped_bit_is_found_and_what_it_hit_is_computed_again(self):
        _, figures = self.sweep(TINY, "first")
        segment, = self.segments()
        bytes_ = bytearray(segment.read_bytes())
        at = len(bytes_) * 2 // 3
        bytes_[at] ^= 0x10
        segment.write_bytes(bytes_)
        damaged, = self.store("verify", expect=3)["damaged"]
        self.assertEqual(damaged["file"], str(segment.relative_to(self.directory)))
        self.assertLessEqual(damaged["first_byte"], at)
        self.assertGreater(damaged["first_byte"] + damaged["bytes"], at)
        self.assertIn(str(segment.name), self.run_program("store", "verify", "--store", "store", expect=3).stdout)
        done, again = self.sweep(TINY, "second")
        self.assertEqual((again["tasks_computed"], again["tasks_from_store"]), (1, figures["tasks_computed"] - 1))
        self.assertIn("1 damaged place in the store", done.stderr)
        self.assert_same("first", "second")
        _, third = self.sweep(TINY, "third")  # what was computed again is there now
        self.assertEqual(third["tasks_computed"], 0)
        self.assert_same("first", "third")

    def test_sweeps_that_share_a_store_and_are_killed_leave_it_whole(self):
        spec = ["sweep", TINY, "--set", "strategy.global_batch=64", "-j", 1, "--in-process", "--store"]
        self.run_program(*spec, "none", "-o", "reference")
        for round_ in range(3):
            runs = [subprocess.Popen([PROGRAM, *map(str, spec), "store", "-o", f"run{round_}-{i}"], cwd=self.directory,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, text=True)
                    for i in range(2)]
            victim, survivor = runs
            journal = self.directory / f"run{round_}-0" / "journal"
            while victim.poll() is None and not any(file.stat().st_size > 20000 * round_ + 2000
                                                    for file in journal.glob("*")):
                time.sleep(0.002)
            os.killpg(victim.pid, signal.SIGKILL)
            victim.communicate()
            said = survivor.communicate(timeout=PATIENCE_S)[1]
            self.assertEqual(survivor.returncode, 0, said)
            self.assertEqual(self.store("verify")["damaged"], [])
            self.run_program("resume", f"run{round_}-0", "-j", 1, "--in-process", "--store", "store")
            self.assert_same("reference", f"run{round_}-0", f"run{round_}-1")
            if round_ == 1:  # and once with less than it had
                self.store("prune", "--limit", f"{sum(s.stat().st_size for s in self.segments()) // 2}")
        self.assertEqual(self.store("verify")["damaged"], [])


if __name__ == "__main__":
    unittest.main()
