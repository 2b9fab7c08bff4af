"""`manyworlds model`, and models named by the path of their config.json: what is printed is what is simulated."""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from program import run

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
FILES = ROOT / "tests/experiments/models"
PAGE = (ROOT / "docs/models.md").read_text()
SPEC = """
name: small
base:
  model: {like: MODEL, layers: 4}
  cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 8, nic_gbps: 400}
  strategy: {tp: 2, micro_batch: 1, global_batch: 8}
"""


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-models-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        (cls.directory / "llama").mkdir()
        shutil.copy(FILES / "meta-llama--Meta-Llama-3.1-8B.json", cls.directory / "llama/config.json")
        (cls.directory / "file.yaml").write_text(SPEC.replace("MODEL", "llama"))
        (cls.directory / "name.yaml").write_text(SPEC.replace("MODEL, ", "llama3-8b, sequence: 4096, "))

    def say(self, *words, expect=0):
        return run(*words, directory=self.directory, expect=expect)

    def test_each_setting_is_printed_with_its_key_and_line(self):
        text = self.say("model", "llama").stdout
        lines = (self.directory / "llama/config.json").read_text().splitlines()
        named = re.findall(r"^  \w+ +(\w+) +(\w+), line (\d+)$", text, re.MULTILINE)
        self.assertGreater(len(named), 6)
        for value, key, line in named:
            self.assertIn(f'"{key}": {value}', lines[int(line) - 1])
        told = json.loads(self.say("model", "llama", "--json").stdout)
        self.assertEqual(told["parameters"], 8_030_261_248)
        self.assertEqual(told["token_table_parameters"], 128_256 * 4096)
        self.assertEqual(told["assumed_sequence"], 4096)
        self.assertEqual([note["key"] for note in told["without_effect"]], ["rope_scaling"])

    def test_rows_add_up_to_the_total_and_say_how_tables_are_padded(self):
        for name, padded in (("llava-1.5-7b", 32_128), ("gpt-j-6b", 50_432), ("wav2vec2-base", 128), ("bert-large-mlperf", 30_592),
                             ("flux.1-dev", None), ("dlrm", None), ("deepseek-v3", None), ("llama3-8b", None)):
            told = json.loads(self.say("model", "show", name, "--json").stdout)
            rows = told["layers"]["rows"]
            self.assertEqual(sum((row["parameters"] + row["expert_parameters"]) * row["layers"] for row in rows), told["parameters"], name)
            text = self.say("model", "show", name).stdout
            self.assertEqual("on ranks a table has" in text, padded is not None, name)
            if padded:
                self.assertIn(f"on ranks a table has {padded}, a multiple of 128 x tp", text)

    def test_what_a_model_has_no_table_for_is_not_counted_without_one(self):
        for name, part, lacks in (("flux.1-dev", "(11.9 B)\n", "token table"), ("vit-b-16", "(86.57 M)\n", "token table"),
                                  ("wav2vec2-base", "; without the output layer 94.37 M", "token table"),
                                  ("clip-vit-l-14", "; without the token table", "output layer"),
                                  ("llama3-8b", ", without the output layer too ", "it is the output")):
            text = self.say("model", name).stdout
            first = text[:text.index("active")]
            self.assertIn(part, first)
            self.assertNotIn(lacks, first)
            tables = json.loads(self.say("model", name, "--json").stdout)["token_table_parameters"]
            self.assertEqual(tables == 0, lacks == "token table")

    def test_a_model_in_yaml_is_told_where_it_belongs(self):
        (self.directory / "own.yaml").write_text("{like: llama3-8b, frozen_weights: nf4}")
        said = self.say("search", "--model", "own.yaml", "--gpu", "h100", "--gpus", 8, expect=2).stderr
        for part in ("own.yaml: is YAML", "config.json", "--catalog DIR", "'model:'"):
            self.assertIn(part, said)

    def test_a_file_and_the_catalog_give_the_same_step(self):
        by_file, by_name = (json.loads(self.say("run", f"{spec}.yaml", "--json").stdout) for spec in ("file", "name"))
        for column in ("step_time_ps", "memory_peak_bytes"):
            self.assertEqual(by_file[column], by_name[column])
        self.assertNotIn("model.sequence", by_name["assumed"])
        self.assertIn("model.sequence=4096", by_file["assumed"])
        self.assertIn("model llama read from", by_file["assumed"])

    def test_a_search_of_a_file_names_it_so_that_it_is_found_from_everywhere(self):
        yaml = self.say("search", "--model", "llama", "--gpus", "8", "--gpu", "h100_sxm", "--sweep-yaml").stdout
        self.assertIn(f'{{like: "{self.directory.resolve()}/llama"}}', yaml.replace(str(self.directory),
                                                                               str(self.directory.resolve())))
        self.assertIn("name: llama-on-8-h100_sxm", yaml)

    def test_a_sweep_is_continued_without_the_file(self):
        folder = self.directory / "gone"
        folder.mkdir()
        shutil.copy(self.directory / "llama/config.json", folder / "config.json")
        (self.directory / "gone.yaml").write_text(SPEC.replace("MODEL", "gone") + "axes: {strategy.tp: [1, 2]}\n")
        self.say("sweep", "gone.yaml", "-o", "run", "-j", "1")
        shutil.rmtree(folder)
        self.say("resume", "run", "-j", "1")
        self.assertIn("model gone read from", self.say("top", "run").stdout)

    def test_what_cannot_be_modelled_ends_with_2_on_a_short_line_and_a_list(self):
        jamba = self.directory / "jamba.json"
        jamba.write_text('{"model_type": "jamba",\n"mamba_d_state": 16,\n"alibi": true}')
        for file, part in ((FILES / "stepfun-ai--Step-3.7-Flash-FP8.json", "'attention_other_setting'"),
                           (jamba, "'mamba_d_state'")):
            said = self.say("model", str(file), expect=2).stderr
            self.assertIn(part, said)
            first, *listed = said.splitlines()
            self.assertLess(len(first), 200)
            if listed:
                self.assertIn(f"{len(listed)} of its settings cannot be modelled", first)
                for line in listed:
                    self.assertRegex(line, r"^  line \d+: ")
        self.assertIn("--set model=./nothing: model './nothing': ./nothing: no such file or folder",
                      self.say("run", "name.yaml", "--set", "model=./nothing", expect=2).stderr)

    def test_the_page_has_all_families(self):
        (self.directory / "unknown.json").write_text('{"model_type": "x"}')
        said = self.say("model", "unknown.json", expect=2).stderr
        known = re.search(r"known are ([^;]*);", said).group(1).split(", ")
        read = PAGE[PAGE.index("## What is read"):]
        rows = read[:read.index("**Image towers**")]
        listed = re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| (`.*?) \|", rows, re.MULTILINE)))
        self.assertEqual(sorted(listed), known)


if __name__ == "__main__":
    unittest.main(verbosity=2)
