"""`manyworlds run --schedule`: the picture is well-formed, needs nothing from elsewhere, and its areas are times."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from program import SWEEPS, run

SVG = "{http://www.w3.org/2000/svg}"
PARTS = {"forward": ["forward_s"], "backward": ["backward_s"], "recompute": ["recompute_s"],
         "optimizer": ["optimizer_s"], "host": ["host_s"], "stall": ["stall_s"], "bubble": ["bubble_s"],
         "communication": [f"exposed_{which}_s" for which in ("tp", "dp", "pp", "cp", "ep")]}
PIPELINE = """
name: 'a "small" <step> & its Größe'
base:
  model: gpt3-125m
  cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 4, nic_gbps: 100}
  strategy: {tp: 1, pp: 4, micro_batch: 1, global_batch: 8, schedule: SCHEDULE}
assume: 2021
"""


class Schedule(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-schedule-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)

    def draw(self, spec, name, *words):
        told = run("run", spec, "--json", "--schedule", name, *words, directory=self.directory)
        return json.loads(told.stdout), ElementTree.parse(self.directory / name).getroot()

    def pipeline(self, kind):
        path = self.directory / f"{kind}.yaml"
        path.write_text(PIPELINE.replace("SCHEDULE", kind), encoding="utf-8")
        return path

    def colours(self, root):
        """Names of the legend by colour, and their shares of the time in per cent."""
        swatches = [rectangle for rectangle in root.iter(SVG + "rect") if rectangle.get("height") == "12.00"]
        told = [text.text for text in root.iter(SVG + "text") if text.get("y") == "44.00"]
        self.assertEqual(len(swatches), len(told))
        names, shares = {}, {}
        for swatch, text in zip(swatches, told):
            name, share = re.fullmatch(r"(\w+) ([\d.]+) %", text).groups()
            names[swatch.get("color", "bubble")] = name
            shares[name] = float(share)
        return names, shares

    def test_the_area_of_every_colour_is_its_time(self):
        answer, root = self.draw(SWEEPS / "korthikanti-175b.yaml", "large.svg")
        names, shares = self.colours(root)
        rows = [rectangle for rectangle in root.iter(SVG + "rect")
                if rectangle.get("class") == "grid" and rectangle.get("height") != "12.00"]
        self.assertEqual(len(rows), 8)
        whole = sum(float(row.get("width")) * float(row.get("height")) for row in rows)
        left, right = float(rows[0].get("x")), float(rows[0].get("x")) + float(rows[0].get("width"))
        areas = {"bubble": whole}
        for path in root.iter(SVG + "path"):
            boxes = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H([\d.]+)z", path.get("d"))
            self.assertEqual("".join("M%s %sH%sV%sH%sz" % box for box in boxes), path.get("d"))
            area = 0
            for x1, low, x2, high, back in [map(float, box) for box in boxes]:
                self.assertTrue(left <= x1 < x2 <= right and high < low and back == x1)
                area += (x2 - x1) * (low - high)
            areas[names[path.get("color")]] = area
            areas["bubble"] -= area
        slowed = answer["slowed_s"] / answer["step_time_s"]  # is part of the kernels that it slowed
        for name, columns in PARTS.items():
            expected = sum(answer[column] for column in columns) / answer["step_time_s"]
            delta = 0.004 + (slowed if name in ("forward", "backward", "recompute") else 0)
            self.assertAlmostEqual(areas.get(name, 0) / whole, expected, delta=delta, msg=name)
            self.assertAlmostEqual(shares.get(name, 0) / 100, expected, delta=6e-4 + delta - 0.004, msg=name)

    def test_a_row_shows_the_micro_batches_in_the_order_of_its_schedule(self):
        for kind, last in (("gpipe", [*range(8)] + [*range(8)]), ("1f1b", [i // 2 for i in range(16)])):
            _, root = self.draw(self.pipeline(kind), kind + ".svg")
            numbers = {}
            for text in root.iter(SVG + "text"):
                if text.get("color") == "#ffffff":
                    numbers.setdefault(float(text.get("y")), []).append((float(text.get("x")), int(text.text)))
            rows = [[number for _, number in sorted(row)] for _, row in sorted(numbers.items())]
            self.assertEqual(len(rows), 4)
            for row in rows:
                self.assertEqual(sorted(row), sorted(2 * [*range(8)]))
            self.assertEqual(rows[3], last)  # the last stage turns around at once, or after all forward passes

    def test_it_needs_nothing_from_elsewhere_escapes_its_text_and_is_the_same_twice(self):
        spec = self.pipeline("1f1b")
        _, root = self.draw(spec, "one.svg")
        self.draw(spec, "two.svg", "--coupled")
        text = (self.directory / "one.svg").read_text(encoding="utf-8")
        self.assertEqual(text, (self.directory / "two.svg").read_text(encoding="utf-8"))
        self.assertEqual(re.findall(r"(?:href|src|url|@import|<script)[^>]*", text), [])
        self.assertEqual(set(re.findall(r"https?://[^\s\"]+", text)), {"http://www.w3.org/2000/svg"})
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertTrue(next(root.iter(SVG + "text")).text.startswith('a "small" <step> & its Größe: '))

    def test_it_goes_with_a_timeline_of_other_ranks(self):
        spec = self.pipeline("gpipe")
        run("run", spec, "--schedule", "with.svg", "--timeline", "with.json", "--timeline-ranks", "1",
            directory=self.directory)
        run("run", spec, "--schedule", "alone.svg", directory=self.directory)
        run("run", spec, "--timeline", "alone.json", "--timeline-ranks", "1", directory=self.directory)
        for kind in ("svg", "json"):
            self.assertEqual((self.directory / f"with.{kind}").read_bytes(),
                             (self.directory / f"alone.{kind}").read_bytes())

    def test_what_cannot_be_is_refused(self):
        spec = self.pipeline("gpipe")
        for words, code in [(["--schedule", "x.svg", "--memory"], 2), (["--schedule", "nowhere/x.svg"], 74)]:
            done = run("run", spec, *words, directory=self.directory, expect=code)
            self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
