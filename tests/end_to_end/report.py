"""The report of the first sweep in a real browser: what it draws, sorts and filters, and that it asks nobody for anything.

With MANYWORLDS_PICTURES=FOLDER its screenshots are left there to be looked at.
"""

import html
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser
import h5py
from program import BUILD, SWEEPS, run

READY = "return document.documentElement.dataset.ready"
VIEWS = {"light": {}, "dark": {"dark": True}, "phone": {"width": 390, "height": 844}}
MANY = 100_000


def columns_of(results):
    with h5py.File(results) as file:
        table = file["experiments"]
        return {name: [value.decode() if isinstance(value, bytes) else value for value in table[name][:]] for name in table}


@unittest.skipIf(browser.unavailable(), browser.unavailable())
class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="manyworlds-report.")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.run_directory = cls.folder / "run"
        smaller = [word for key in ("strategy.micro_batch=2", "strategy.global_batch=256", "cluster.nodes=8") for word in ("--set", key)]
        run("sweep", SWEEPS / "first.yaml", "-o", cls.run_directory, *smaller, directory=cls.folder)
        run("report", cls.run_directory, directory=cls.folder)
        cls.page = cls.run_directory / "report.html"
        cls.columns = columns_of(cls.run_directory / "results.h5")
        cls.browser = browser.Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def opened(self, page, **view):
        """The page in the browser of all tests, which takes longer to start than a page to be opened."""
        self.browser.see(**view)
        self.browser.open(page.as_uri())
        self.browser.wait_for(READY)
        return self.browser

    def assert_quiet(self, page, opened):
        """Nobody complained, and nothing was asked for but the page."""
        opened.listen()
        self.assertEqual(opened.complaints, [])
        self.assertEqual([url for url in opened.requests if not url.startswith("data:")], [page.as_uri()])

    def shown(self, opened, column):
        """What the rows in view show of a column."""
        return opened.run("""
            const at = [...document.querySelectorAll('#grid thead tr:first-child th')]
              .findIndex(title => title.dataset.column === arguments[0]);
            return [...document.querySelectorAll('#grid tbody tr:not([aria-hidden])')].map(row => row.cells[at].innerText);""",
            column)

    def press(self, opened, column):
        opened.run("document.querySelector(`#grid th[data-column='${arguments[0]}'] button`).click()", column)

    def write(self, opened, column, text):
        opened.run("""
            const input = document.querySelector(`#grid input[data-column='${arguments[0]}']`);
            input.value = arguments[1];
            input.dispatchEvent(new Event('input'));""", column, text)

    def count(self, opened):
        words = opened.run("return document.getElementById('shown').textContent")
        return int(words.split(" of ")[0].replace(",", ""))

    def test_it_has_the_launch_flags_of_the_best_as_top_emits_them(self):
        emitted = run("top", self.run_directory, "--emit", "megatron", directory=self.folder).stdout
        page = html.unescape(self.page.read_text())
        self.assertIn(f"manyworlds top {self.run_directory} --emit megatron (with", page)
        self.assertIn(emitted[emitted.index("#!/bin/bash"):], page)

    def test_the_same_results_make_the_same_bytes(self):
        again = self.folder / "again.html"
        run("report", self.run_directory, "-o", again, directory=self.folder)
        self.assertEqual(again.read_bytes(), self.page.read_bytes())

    def test_charts_are_drawn_in_light_and_dark_and_on_a_phone(self):
        grounds = {}
        for name, view in VIEWS.items():
            with self.subTest(name):
                opened = self.opened(self.page, **view)
                charts = opened.run("return [...document.querySelectorAll('canvas')].map(canvas => canvas.id)")
                # Five axes and the topology, three at least of the others.
                self.assertGreaterEqual(len(charts), 9)
                for chart in charts:
                    self.assertGreater(opened.drawn(f"[id='{chart}']"), 0.01, chart)
                wide, window = opened.run("return [document.documentElement.scrollWidth, innerWidth]")
                self.assertLessEqual(wide, window, "the page is wider than the window")
                # The ranking is read without scrolling, but for a phone's: its rows are a line each there.
                width, box, row = opened.run("""
                    const ranking = document.querySelector('.scroll');
                    const rows = [...ranking.querySelectorAll('tr')].map(one => one.clientHeight);
                    return [ranking.scrollWidth, ranking.clientWidth, Math.max(...rows)];""")
                if name == "phone":
                    self.assertLess(row, 40)
                else:
                    self.assertLessEqual(width, box)
                grounds[name] = opened.run("return getComputedStyle(document.body).backgroundColor")
                self.assert_quiet(self.page, opened)
                if "MANYWORLDS_PICTURES" in os.environ:
                    opened.picture(pathlib.Path(os.environ["MANYWORLDS_PICTURES"]) / f"report-{name}.png")
        self.assertEqual(grounds["light"], grounds["phone"])
        self.assertNotEqual(grounds["light"], grounds["dark"])

    def test_charts_change_their_colours_with_the_readers_system(self):
        opened = self.opened(self.page)
        pixels = "return document.querySelector('canvas').toDataURL()"
        light = opened.run(pixels)
        opened.command("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        opened.wait_for("return document.querySelector('canvas').toDataURL() !== arguments[0]", light)

    def test_sorting(self):
        opened = self.opened(self.page)
        ran = [(value, number) for number, value in zip(self.columns["id"], self.columns["tokens_per_s_per_gpu"])
               if value == value]
        ranked = [str(number) for value, number in sorted(ran, key=lambda one: (-one[0], one[1]))]
        first = self.shown(opened, "id")
        self.assertGreater(len(first), 10)
        self.assertEqual(first, ranked[: len(first)])
        self.press(opened, "tokens_per_s_per_gpu")  # smallest first
        slowest = sorted(value for value, _ in ran)[: len(first)]
        ids = {number: value for value, number in ran}
        self.assertEqual([ids[int(number)] for number in self.shown(opened, "id")][: len(first)], slowest)
        self.press(opened, "tokens_per_s_per_gpu")  # largest first
        self.assertEqual(self.shown(opened, "id")[0], ranked[0])
        self.press(opened, "topology")
        names = sorted(self.columns["topology"])
        self.assertEqual(self.shown(opened, "topology")[:5], names[:5])

    def test_filtering(self):
        opened = self.opened(self.page)
        columns, rows = self.columns, range(len(self.columns["id"]))
        gib = 2**30
        for written, holds in {
            ("strategy.tp", "4"): lambda row: columns["strategy.tp"][row] == 4,
            ("strategy.tp", ">=4"): lambda row: columns["strategy.tp"][row] >= 4,
            ("strategy.tp", "2..4"): lambda row: 2 <= columns["strategy.tp"][row] <= 4,
            ("memory_peak_bytes", "<40"): lambda row: columns["memory_peak_bytes"][row] < 40 * gib,
            ("mfu", ">20"): lambda row: columns["mfu"][row] > 0.20,
            ("topology", "FAT"): lambda row: "fat" in columns["topology"][row],
            ("status", "out_of"): lambda row: columns["status"][row] == "out_of_memory",
        }.items():
            with self.subTest(written):
                self.write(opened, *written)
                self.assertEqual(self.count(opened), sum(map(holds, rows)))
                self.write(opened, written[0], "")
        self.write(opened, "strategy.tp", "8")
        self.write(opened, "topology", "rail")
        self.assertEqual(self.count(opened), sum(columns["strategy.tp"][row] == 8 and "rail" in columns["topology"][row]
                                                 for row in rows))
        # What is no number is said so, and hides nothing.
        self.write(opened, "strategy.tp", "eight")
        self.assertEqual(opened.run("return document.querySelector(`input[data-column='strategy.tp']`).ariaInvalid"), "true")
        opened.run("document.getElementById('everything').click()")
        self.assertEqual(self.count(opened), len(rows))
        # A column that was not shown.
        self.assertNotIn("bubble_s", opened.run("return document.querySelector('#grid thead').innerHTML"))
        opened.run("document.querySelector(\"[data-choice='bubble_s']\").click()")
        self.assertRegex(self.shown(opened, "bubble_s")[0], r"^[\d.]+ [mun]?s$")
        self.assert_quiet(self.page, opened)

    def test_a_point_of_a_picture_leads_to_its_row(self):
        opened = self.opened(self.page)
        row = opened.run("""
            const chart = Chart.getChart('pareto-memory_peak_bytes'), last = chart.data.datasets[0].data.length - 1;
            chart.canvas.scrollIntoView();
            const {x, y} = chart.getDatasetMeta(0).data[last].getProps(['x', 'y'], true);
            const box = chart.canvas.getBoundingClientRect();
            return {x: box.x + x, y: box.y + y, row: chart.data.datasets[0].data[last].row};""")
        for kind in ("mousePressed", "mouseReleased"):
            opened.command("Input.dispatchMouseEvent", type=kind, x=row["x"], y=row["y"], button="left", clickCount=1)
        opened.wait_for("return document.querySelector('#grid tr.picked')")
        self.assertEqual(opened.run("return document.querySelector('#grid tr.picked').cells[0].innerText"),
                         str(self.columns["id"][row["row"]]))

    def test_it_prints(self):
        opened = self.opened(self.page)
        self.assertGreater(len(opened.command("Page.printToPDF")["data"]), 50_000)
        opened.command("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(opened.run("return getComputedStyle(document.getElementById('experiments')).display"), "none")

    def test_a_hundred_thousand_experiments(self):
        many, page = self.folder / "many.h5", self.folder / "many.html"
        subprocess.run([BUILD / "tests/many_experiments", self.run_directory / "results.h5", str(MANY), many], check=True)
        run("report", many, "-o", page, directory=self.folder)
        self.assertLessEqual(page.stat().st_size, 40e6)
        opened = self.opened(page)
        columns = columns_of(many)
        self.assertLess(len(self.shown(opened, "id")), 60, "only rows in view are in the page")
        took = opened.run("""
            const begin = performance.now();
            document.querySelector(`#grid th[data-column='memory_peak_bytes'] button`).click();
            return performance.now() - begin;""")
        least = min(range(MANY), key=lambda row: columns["memory_peak_bytes"][row])
        self.assertEqual(self.shown(opened, "id")[0], str(least))
        self.write(opened, "strategy.tp", "8")
        self.assertEqual(self.count(opened), columns["strategy.tp"].count(8))
        self.assert_quiet(page, opened)
        print(f"{MANY} experiments: {page.stat().st_size / 1e6:.1f} MB, ready after {opened.run(READY)} ms, "
              f"sorted in {took:.0f} ms", file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
