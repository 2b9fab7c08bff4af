"""The README and the pages for users say only what is so: examples run as written, verbs, options and paths exist."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])
README = (ROOT / "README.md").read_text()
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text()
         for name in ("sweeps", "searches", "tutorial", "check", "commands", "decisions", "models", "reading", "cluster", "accuracy", "benchmarks", "CONTRIBUTING",
                      "architecture")}
TEXT = README + "".join(PAGES.values())
MODEL = {f"docs/{path.relative_to(ROOT / 'docs')}": path.read_text()
         for path in [ROOT / "docs" / "model.md", *sorted((ROOT / "docs" / "model").glob("*.md"))]}
SWEEP = "Your model, your cluster"  # the README's section with a sweep; its commands are run, then those of two pages


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL).group(1)


def blocks(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(command, directory):
    environment = {**os.environ, "PATH": f"{BUILD}:/usr/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{directory}/cache"}
    return subprocess.run(command, shell=isinstance(command, str), cwd=directory, env=environment, timeout=1200,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)


def help_of(*words):
    done = run(["manyworlds", *words, "-h"], ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Readme(unittest.TestCase):
    def test_the_example_runs_as_written(self):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "mine.yaml").write_text(blocks("yaml", section(SWEEP))[0])
            commands = [line for text in (section(SWEEP), PAGES["reading"], PAGES["cluster"])
                        for block in blocks("sh", text) for line in block.splitlines()]
            self.assertEqual(len(commands), 14)
            done = {}
            for command in commands:
                done[command] = run(command, directory)
                self.assertEqual(done[command].returncode, 0, f"{command}\n{done[command].stdout}{done[command].stderr}")
            top = next(result.stdout for command, result in done.items() if " top " in command)
            self.assertRegex(top, r"rail_optimized|fat_tree")
            table = next(result.stdout for command, result in done.items() if "pandas" in command)
            self.assertIn("12 rows", table)  # 3 tp x 2 pp x 2 fabrics, all within the constraint

    def test_the_lines_for_a_model_a_job_and_a_log_run_as_written(self):
        tests = ROOT / "tests" / "experiments"
        lines = [line.split("#")[0].strip() for line in re.findall(r"^    (manyworlds (?:search|check|list) .*)$", README, re.MULTILINE)]
        self.assertEqual(len(lines), 5)
        with tempfile.TemporaryDirectory() as directory:
            for name, source in (("config.json", tests / "models" / "Qwen--Qwen3-0.6B.json"),
                                 ("train.sh", tests / "jobs" / "train_llama3_8b_h100_fp8.sh"), ("train.log", tests / "logs" / "megatron_v100.log")):
                shutil.copy(source, pathlib.Path(directory) / name)
            for line in lines:
                done = run(line + (" --budget 2s" if " search " in line else ""), directory)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")

    def test_the_page_on_sweeps_has_the_same_example(self):
        self.assertEqual(blocks("yaml", section(SWEEP))[0], blocks("yaml", PAGES["sweeps"])[0])
        self.assertEqual(blocks("sh", section(SWEEP)), blocks("sh", PAGES["sweeps"]))

    def test_its_errors_are_those_of_the_accuracy_page(self):
        means = dict(re.findall(r"^\| (\w+), mean over families \|(?:[^|]*\|){4} ([\d.]+ %) \|", PAGES["accuracy"], re.MULTILINE))
        prose = " ".join(section("How far to trust it").split())
        told = {gpu: error for error, gpu in re.findall(r"([\d.]+ %) on (\w+)", prose)}
        self.assertEqual(told, {gpu: means[gpu] for gpu in ("A100", "H100", "GB200")})

    def test_the_large_sweep_is_planned_and_has_the_size_it_says(self):
        command, _, _ = re.findall(r"^    (manyworlds sweep experiments/.*)$", PAGES["sweeps"], re.MULTILINE)
        planned = run(command + " --json", ROOT)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        told = json.loads(planned.stdout)
        layouts, fitting = re.search(r"([\d,]+) layouts, of which ([\d,]+) fit into memory", PAGES["sweeps"]).groups()
        self.assertEqual(int(layouts.replace(",", "")), told["experiments"])
        self.assertEqual(int(fitting.replace(",", "")), told["experiments"] - told["out_of_memory"])

    def test_the_space_that_nobody_can_list_is_planned_in_the_part_that_has_its_best(self):
        _, command, _ = re.findall(r"^    (manyworlds sweep experiments/.*)$", PAGES["sweeps"], re.MULTILINE)
        part = "".join(f" --set strategy.{one}" for one in ("pp=4", "cp=1", "ep=8", "etp=2"))
        planned = run(command + part + " --dry-run --json", ROOT)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn("1.04e+05 points", planned.stderr)
        self.assertLess(json.loads(planned.stdout)["experiments"], 2000)

    def test_the_space_of_stages_with_any_layers_is_planned_in_the_part_that_has_its_best(self):
        _, _, command = re.findall(r"^    (manyworlds sweep experiments/.*)$", PAGES["sweeps"], re.MULTILINE)
        part = "".join(f" --set strategy.{one}" for one in ("pp=16", "cp=2", "micro_batch=1", "recompute=full", "bucket_parameters=40000000"))
        planned = run(command + part + " --dry-run --json", ROOT)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertRegex(planned.stderr, r"[\d.e+]+ points, and any layers of their stages")
        self.assertEqual(len(json.loads(planned.stdout)["first"]["strategy"]["stage_layers"].split("+")), 16 * json.loads(planned.stdout)["first"]["strategy"]["virtual_stages"])

    def test_every_verb_and_option_it_names_exists(self):
        listed = help_of()
        named = re.findall(r"manyworlds ([a-z]+)\b([^`\n|]*)", TEXT)
        self.assertGreater(len(named), 9)
        for verb, rest in named:
            self.assertRegex(listed, rf"(?m)^\s*{verb}\b")
            for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest.split("#")[0]):
                self.assertIn(option, help_of(verb), f"{verb} {option}")
        for row, options in re.findall(r"^\| `manyworlds (\w+)[^|]*\|([^|]*)\|$", TEXT, re.MULTILINE):
            for option in re.findall(r"`(--?[a-z][a-z-]*)", options):
                self.assertIn(option, help_of(row), f"{row} {option}")

    def test_every_verb_that_exists_is_named(self):
        for verb in re.findall(r"(?m)^  (\w+)  ", help_of()):
            self.assertIn(f"`manyworlds {verb}", PAGES["commands"])

    def test_every_path_it_names_exists(self):
        text = TEXT.replace(PAGES["reading"], "") + "".join(MODEL.values())  # paths of that page are of HDF5
        paths = set(re.findall(r"(?<![/\w])(?:script|core|topologies|experiments|io|farm|tests)/[\w/.-]*", text))
        self.assertGreater(len(paths), 5)
        for path in sorted(paths):
            named = path.rstrip(".")
            self.assertTrue(any((ROOT / (named + ending)).exists() for ending in ("", ".hpp", ".cpp")), path)
        for page, text in {"README.md": README, **{f"docs/{name}.md": text for name, text in PAGES.items()}, **MODEL}.items():
            for link in re.findall(r"\]\(([\w./]+)\)", text):
                self.assertTrue(((ROOT / page).parent / link).exists(), f"{page}: {link}")

    def test_its_two_commands_are_scripts_that_can_be_run_and_CI_runs_the_second(self):
        commands = re.findall(r"^    (script/\w+)", section("Two commands"), re.MULTILINE)
        self.assertEqual(commands, ["script/demo", "script/test"])
        for command in commands:
            self.assertTrue(os.access(ROOT / command, os.X_OK))
        self.assertRegex((ROOT / ".ci/run").read_text(), r"(?m)^exec script/test ")

    def test_what_is_installed_runs(self):
        with tempfile.TemporaryDirectory() as directory:
            installed = run(["cmake", "--install", str(BUILD), "--prefix", directory], ROOT)
            self.assertEqual(installed.returncode, 0, installed.stderr)
            self.assertEqual(run([f"{directory}/bin/manyworlds", "list", "topologies"], directory).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
