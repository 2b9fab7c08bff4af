"""`manyworlds design`: the example of docs/decisions.md, an invented GPU, its entry of the catalog, and what is refused."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import PROGRAM, ROOT, environment_in, run

PAGE = (ROOT / "docs" / "decisions.md").read_text()
SECTION = re.search(r"^## Hardware under a budget\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)
JOB = """
name: small
assume: 2021
base:
  model: {like: gpt3-1.3b, layers: 4}
  cluster: {gpu: a100_80, nodes: 2, gpus_per_node: 4, nic_gbps: 200}
  fidelity: analytic
  strategy: {global_batch: 64, micro_batch: 4, tp: 2}
"""
INVENTED = "name: invented\njob: job.yaml\nchip: {like: a100_80, sms: 160, hbm_stacks: 3, l2_mib: 60}\n"


class Design(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-design-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        (cls.directory / "job.yaml").write_text(JOB)

    def design(self, text, *words, expect=0):
        (self.directory / "design.yaml").write_text(text)
        return run("design", "design.yaml", *words, directory=self.directory, expect=expect)

    def test_the_example_of_the_page_prints_what_it_says(self):
        file, = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        self.assertEqual(file, (ROOT / "experiments" / "design" / "a100.yaml").read_text())
        shown, = re.findall(r"^```\n\$ manyworlds (.*?)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        done = subprocess.run([PROGRAM, *shown[0].split()], cwd=ROOT, env=environment_in(self.directory), capture_output=True,
                              text=True, timeout=1200)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, shown[1])

    def test_a_gpu_with_more_sms_and_less_hbm_has_faster_gemms_and_slower_softmax(self):
        told = json.loads(self.design(INVENTED, "--json").stdout)
        invented, market = told["designs"]
        self.assertEqual((invented["title"], market["title"]), ("as described", "a100_80"))
        self.assertLess(invented["gemm_us"], market["gemm_us"])
        self.assertAlmostEqual((invented["softmax_us"] - 3.2) / (market["softmax_us"] - 3.2), 5 / 3, places=2)
        self.assertEqual(invented["all_reduce_us"], market["all_reduce_us"])
        self.assertGreater(invented["die_mm2"], market["die_mm2"])
        self.assertLess(invented["hbm_usd"], market["hbm_usd"])
        for one in told["designs"]:
            self.assertAlmostEqual(sum(one[part] for part in ("sms_mm2", "network_mm2", "l2_mm2", "hbm_mm2", "links_mm2", "rest_mm2")),
                                   one["die_mm2"], places=6)
            self.assertAlmostEqual(one["gflops_per_usd"], one["matrix_tflops"] * 1e3 / one["usd"], places=6)

    def test_other_commands_take_the_gpu_from_its_catalog_file(self):
        told = json.loads(self.design(INVENTED, "--json", "--write-catalog", "gpu.yaml").stdout)["designs"][0]
        ran = json.loads(run("run", "job.yaml", "--catalog", "gpu.yaml", "--set", "cluster.gpu=invented", "--json",
                             directory=self.directory).stdout)
        self.assertAlmostEqual(ran["step_time_s"] / told["step_time_s"], 1, places=9)

    def test_a_found_design_can_be_shown_packet_by_packet(self):
        text = INVENTED + "budget: {power_w: 400}\nsearch: {sms: [60, 160], links: [4, 12]}\n"
        told = {fidelity: json.loads(self.design(text, "--json", "--evaluations", 16, "--fidelity", fidelity).stdout)
                for fidelity in ("analytic", "packet")}
        for analytic, packet in zip(told["analytic"]["designs"], told["packet"]["designs"]):
            self.assertEqual(analytic["chip"], packet["chip"])
            self.assertLessEqual(analytic["step_time_s"], packet["step_time_s"])
        for one in told["packet"]["designs"][1:4]:
            self.assertLessEqual(one["power_w"], 400)

    def test_what_is_wrong_is_said_on_one_line_with_its_place(self):
        for text, words, message in (
                (INVENTED.replace("sms: 160", "sms: many"), (), "design.yaml:3: 'chip.sms' must be an integer"),
                (INVENTED.replace("sms:", "smz:"), (), "design.yaml:3: unknown key 'smz'; did you mean 'sms'"),
                (INVENTED + "budget: {usd: 100}\nsearch: {sms: [60, 160]}\n", (), "design.yaml:5: even the least units"),
                (INVENTED.replace("job.yaml", "none.yaml"), (), "none.yaml"),
                (INVENTED, ("--evaluations", 3), "--evaluations: must be from 8"),
                (INVENTED, ("--fidelity", "exact"), "--fidelity: must be one of"),
                (INVENTED, ("--set", "cluster.gpu=l40s"), "design.yaml:2: the job runs on the GPU 'l40s'")):
            done = self.design(text, *words, expect=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
