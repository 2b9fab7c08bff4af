"""A real cluster's ibnetdiscover becomes a cluster file, on whose hosts a collective, a step and a search run."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from program import PATIENCE_S, PROGRAM, ROOT

SAMPLES = ROOT / "tests/experiments/clusters"
HOSTS = "a08-p1-dgx-04-c[01-08],b07-p1-dgx-07-c[01-04,06-09]"
SPEC = """name: placed
base:
  model: llama3-8b
  cluster: {like: mine.yaml, node_list: "%s"}
  strategy: {tp: 4, global_batch: 64}
""" % HOSTS


class Clusters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.found = cls.run_in("cluster", str(SAMPLES / "ibnetdiscover.out.gz"), "--gpu", "h100_sxm", "-o", "mine.yaml").stdout
        (pathlib.Path(cls.folder.name) / "spec.yaml").write_text(SPEC)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_in(cls, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=cls.folder.name, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode != code:
            raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr}")
        return done

    def test_what_is_in_the_file_is_said(self):
        for words in ("hosts       141, 121 with all 4 NICs", "leaves      31 switches", "spines      9 switches",
                      "542 NICs of 400 Gb/s", "26 cables", "b08-p1-dgx-08-c01"):
            self.assertIn(words, self.found)

    def test_an_all_reduce_of_64_gpus_runs_on_the_listed_hosts(self):
        links = self.run_in("net", "spec.yaml", "--collective", "all_reduce", "--bytes", "64MiB", "--links").stdout
        self.assertIn("gpu0->A09-P1-IBLEAF-01-04", links)
        self.assertIn("gpu63->B09-P1-IBLEAF-04-07", links)

    def test_link_hops_add_up_also_where_flows_meet(self):
        files = sorted(str(path) for path in SAMPLES.glob("two-tier-clos-fabric-*.yaml"))
        self.run_in("cluster", *files, "--gpu", "h100_sxm", "-o", "clos.yaml")
        (pathlib.Path(self.folder.name) / "clos_spec.yaml").write_text("name: clos\nbase: {cluster: clos.yaml}\n")
        told = json.loads(self.run_in("net", "clos_spec.yaml", "--collective", "all_reduce", "--bytes", "1MiB",
                                      "--set", "transport.routing=ecmp_hash", "--json").stdout)
        hops = {key.removeprefix("link_hops"): value for key, value in told.items() if key.startswith("link_hops")}
        self.assertTrue(all(value >= 0 for value in hops.values()), hops)
        self.assertEqual(hops[""] + hops["_simulated_again"],
                         hops["_simulated"] + sum(hops["_skipped_" + way] for way in ("cached", "periods", "rate")))

    def test_a_step_runs_and_names_the_fabric(self):
        text = self.run_in("run", "spec.yaml").stdout
        self.assertIn("topology=graph, topology.file=mine.yaml", text)

    def test_a_search_screens_on_the_fabric(self):
        text = self.run_in("search", "--model", "llama3-8b", "--cluster", "mine.yaml", "--node-list", HOSTS, "--packet", "0",
                           "--tp", "4", "--zero", "1", "-o", "run").stdout
        self.assertIn("tokens/s/GPU", text)

    def test_a_host_that_cannot_be_used_is_refused(self):
        for hosts, words in (("a05-p1-dgx-01-c01", "has 3 NICs"), ("nobody", "no host of the fabric"), ("a[1", "bracket")):
            done = self.run_in("run", "spec.yaml", "--set", f"cluster.node_list={hosts}", code=2)
            self.assertIn(words, done.stderr)

    def test_a_rate_that_the_file_has_is_not_given_again(self):
        said = self.run_in("cluster", str(SAMPLES / "ibnetdiscover.out.gz"), "--gpu", "h100_sxm", "--nic-gbps", "200", code=2)
        self.assertIn("tells the rates of all NICs and cables, mostly 400 Gb/s", said.stderr)

    def test_what_a_file_lacks_is_asked_for(self):
        for words, said in (((str(SAMPLES / "ibnetdiscover.out.gz"),), "--gpu"),
                            ((str(SAMPLES / "topology_tree_topograph.conf"), "--gpu", "h100_sxm", "--gpus-per-node", "8"),
                             "--nic-gbps")):
            self.assertIn(said, self.run_in("cluster", *words, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
