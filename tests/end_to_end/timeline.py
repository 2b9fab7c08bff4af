"""`manyworlds run --timeline`: the trace of GPT-3 175B's step is strict, whole, and adds up to the answer."""

import collections
import gzip
import json
import pathlib
import re
import shutil
import tempfile
import time
import unittest
from fractions import Fraction

from program import SWEEPS, run
from trace import Trace

SPEC = SWEEPS / "korthikanti-175b.yaml"  # interleaved: 8 pipeline ranks of 3 chunks, 64 micro-batches, 96 layers
STAGES, CHUNKS, MICRO_BATCHES, LAYERS = 8, 3, 64, 96
BOOKINGS = ["forward", "backward", "recompute", "optimizer", "host"]
WAITS = ["exposed_tp", "exposed_dp", "exposed_pp", "exposed_cp", "exposed_ep", "exposed_other", "exposed_offload",
         "bubble", "stall"]
SMALL = """
name: a "small" <step> & its Größe
base:
  model: gpt3-125m
  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 4, nic_gbps: 100}
  strategy: {tp: 2, pp: 2, micro_batch: 1, global_batch: 8, zero: 1}
assume: 2021
"""


SLOW = """
base:
  model: {like: llama3-8b, layers: 4}
  cluster: {like: dgx_h100_superpod, nodes: 4}
  topology: {fat_tree: {oversubscription: 4}}
  transport: dcqcn
  transport.routing: ecmp_hash
  strategy: {global_batch: 64, tp: 1, zero: 3, micro_batch: 2}
"""


class Timeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-timeline-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.answer = json.loads(run("run", SPEC, "--json", "--timeline", "large.json", directory=cls.directory).stdout)
        cls.trace = Trace(cls.directory / "large.json")
        cls.stages = json.loads(run("run", SPEC, "--memory", "--json", directory=cls.directory).stdout)["stages"]

    def test_packets_that_take_long_are_announced_by_an_estimate(self):
        (self.directory / "slow.yaml").write_text(SLOW)
        begin = time.monotonic()
        done = run("run", "slow.yaml", "--json", directory=self.directory)
        took = time.monotonic() - begin
        said = re.findall(r"analytic estimate: ([\d.]+) (m?)s a step", done.stderr)
        if took > 8:  # the first line comes two seconds after the experiment is read, and a log has another each 30
            self.assertIn(len(said), range(1, 2 + int(took / 30)))
        if took < 2:
            self.assertEqual(said, [])
        for number, milli in said:
            estimate = float(number) * (1e-3 if milli else 1)
            self.assertLess(estimate, 1.1 * json.loads(done.stdout)["step_time_s"])
            self.assertGreater(estimate, 0.3 * json.loads(done.stdout)["step_time_s"])

    def ranks(self):
        """Process, stage and rank of what stands for the stages."""
        found = [(pid, re.fullmatch(r"stage (\d+), rank (\d+) \(gpu\d+\): represents (all )?(\d+) .*",
                                    self.trace.process(pid))) for pid in self.trace.processes()]
        ranks = [(pid, int(match[1]), int(match[2])) for pid, match in found if match]
        self.assertEqual([(stage, rank) for _, stage, rank in ranks], [(stage, 8 * stage) for stage in range(STAGES)])
        self.assertEqual(len(found), STAGES + 1)  # and the links
        return ranks

    def test_it_says_what_it_is_and_ends_when_the_step_does(self):
        about = self.trace.about
        self.assertEqual(about["experiment"], "korthikanti-175b")
        self.assertEqual(about["ranks"], 64)
        self.assertRegex(about["build"], r"^[0-9a-f]{64}$")
        self.assertEqual(self.trace.end, about["step_time_ps"])
        self.assertEqual(about["step_time_ps"] * 1e-12, self.answer["step_time_s"])

    def test_every_pass_of_every_micro_batch_and_every_transfer_is_there(self):
        for pid, stage, _ in self.ranks():
            compute = self.trace.thread(pid, "compute")
            passes = {(slice[4]["micro_batch"], slice[4]["chunk"], slice[2].split()[0])
                      for slice in compute if "micro_batch" in slice[4]}
            self.assertEqual(passes, {(m, c, kind) for m in range(MICRO_BATCHES) for c in range(CHUNKS)
                                      for kind in ("forward", "backward")})
            # A rank hands on what each chunk makes, but the model's last part and, backward, its first.
            for stream, least in [("send_forward", stage == STAGES - 1), ("recv_forward", stage == 0),
                                  ("send_backward", stage == 0), ("recv_backward", stage == STAGES - 1)]:
                self.assertEqual(len(self.trace.thread(pid, stream)), MICRO_BATCHES * (CHUNKS - least), stream)
            operations = collections.Counter(slice[4]["op"] for thread in self.trace.threads
                                             if thread[0] == pid and thread[1] != 2
                                             for slice in self.trace.threads[thread])
            self.assertEqual(set(operations.values()), {1})
            self.assertEqual(set(operations), set(range(len(operations))))  # none left out
            # Sequence parallelism: into and out of attention and feed-forward, and again on the way back, where
            # inputs of two are gathered once more for their weights' gradients.
            of_layers = [slice for slice in self.trace.thread(pid, "tensor")
                         if slice[2] in ("qkv", "attention_output", "mlp_up", "mlp_down")]
            self.assertGreaterEqual(len(of_layers), MICRO_BATCHES * LAYERS // STAGES * 8)

    def test_compute_and_what_it_waits_for_fill_the_step_and_add_up_to_the_breakdown(self):
        sums = collections.Counter()
        for pid, _, _ in self.ranks():
            compute, waits = self.trace.thread(pid, "compute"), self.trace.thread(pid, "compute waits for")
            until = 0
            for begin, end, *_ in sorted(compute + waits, key=lambda slice: slice[:2]):
                self.assertEqual(begin, until)
                until = end
            self.assertEqual(until, self.trace.about["step_time_ps"])
            for begin, end, _, category, args in compute:
                self.assertEqual(category, args["category"])
                sums[category] += end - begin - args["slowed_ps"]
                sums["slowed"] += args["slowed_ps"]
            for begin, end, why, *_ in waits:
                sums[why] += end - begin
        # Every stage's ranks did the same, so the mean over eight is the mean over all.
        for pid, _, _ in self.ranks():
            self.assertIn("represents all 8", self.trace.process(pid))
        self.assertEqual(set(sums) - {"slowed"}, set(BOOKINGS + WAITS) & set(sums))
        for part in BOOKINGS + WAITS + ["slowed"]:
            self.assertAlmostEqual(sums[part] / STAGES * 1e-12, self.answer[part + "_s"], delta=1e-12, msg=part)

    def test_collectives_have_the_bandwidth_that_their_times_say(self):
        factor = {"all_reduce": lambda n: Fraction(2 * (n - 1), n), "all_gather": lambda n: Fraction(n - 1, n),
                  "reduce_scatter": lambda n: Fraction(n - 1, n), "send": lambda n: 1}
        seen = collections.Counter()
        for thread in self.trace.threads.values():
            for begin, end, _, category, args in thread:
                if category != "collective":
                    continue
                last, left = args["last_entered_us"], args["last_left_us"]
                self.assertLessEqual(begin, last * 1_000_000)
                self.assertLessEqual(end, left * 1_000_000)
                speed = Fraction(args["bytes"]) / Fraction(left - last) / 1000  # B/us to GB/s
                self.assertAlmostEqual(float(speed), float(args["algbw_GBps"]), delta=6e-4)
                bus = speed * factor[args["kind"]](args["members"])
                self.assertAlmostEqual(float(bus), float(args["busbw_GBps"]), delta=6e-4)
                seen[args["kind"], args["members"]] += 1
        self.assertGreater(seen["all_gather", 8], 1000)
        self.assertGreater(seen["reduce_scatter", 8], 1000)
        self.assertGreater(seen["send", 2], 1000)

    def test_memory_peaks_at_the_footprint_of_each_stage(self):
        for pid, stage, _ in self.ranks():
            course = self.trace.counters[pid, "memory, bytes"]
            self.assertEqual(max(args["value"] for _, args in course), self.stages[stage]["total_bytes"])
            parts = self.trace.counters[pid, "memory by part, bytes"]
            self.assertEqual([(at, sum(args.values())) for at, args in parts],
                             [(at, args["value"]) for at, args in course])

    def test_links_carry_the_bytes_that_are_told_of_them(self):
        links = {name: course for (pid, name), course in self.trace.counters.items() if name.endswith(", bytes/s")}
        self.assertEqual(sorted(links), sorted(f"{link['link']}, bytes/s" for link in self.trace.about["links"]))
        self.assertEqual(len(links), 8)
        for link in self.trace.about["links"]:
            course = links[f"{link['link']}, bytes/s"]
            bytes_ = sum(Fraction(args["value"]) * (after - at) / 10**12
                         for (at, args), (after, _) in zip(course, course[1:]))
            self.assertEqual(course[-1][1]["value"], 0)
            self.assertAlmostEqual(float(bytes_ / link["bytes"]), 1, delta=1e-9)
            self.assertLessEqual(float(max(args["value"] for _, args in course)) * 8, link["bits_per_second"] * 1.001)
        # 3 x 64 activations of 2048 x 12288 x 2 B, an eighth to each rank, and as many gradients, over the busiest.
        least = 2 * (CHUNKS * MICRO_BATCHES) * (2048 * 12288 * 2 // 8)
        self.assertGreaterEqual(self.trace.about["links"][0]["bytes"] * 2, least)

    def test_both_compositions_write_the_same_bytes_for_whatever_ranks_and_links_are_asked_for(self):
        (self.directory / "small.yaml").write_text(SMALL, encoding="utf-8")
        words = ["run", "small.yaml", "--timeline-ranks", "all", "--timeline-links", "3", "--timeline"]
        run(*words, "composed.json", directory=self.directory)
        run(*words, "coupled.json", "--coupled", directory=self.directory)
        self.assertEqual((self.directory / "composed.json").read_bytes(),
                         (self.directory / "coupled.json").read_bytes())
        trace = Trace(self.directory / "composed.json")
        self.assertEqual(trace.about["experiment"], 'a "small" <step> & its Größe')
        self.assertEqual(trace.processes(), list(range(1, 10)))
        self.assertEqual(len(trace.about["links"]), 3)
        run("run", "small.yaml", "--timeline", "two.json", "--timeline-ranks", "5,0", "--timeline-links", "0",
            directory=self.directory)
        two = Trace(self.directory / "two.json")
        self.assertEqual(two.processes(), [1, 6])
        for key, slices in two.threads.items():
            self.assertEqual(slices, trace.threads[key])

    def test_a_name_in_gz_is_compressed_and_the_files_are_named(self):
        (self.directory / "small.yaml").write_text(SMALL, encoding="utf-8")
        said = run("run", "small.yaml", "--timeline", "plain.json", directory=self.directory).stdout
        self.assertRegex(said, r"\ntimeline: plain\.json, \d[\d.]* [kM]B; ui\.perfetto\.dev opens it\n$")
        said = run("run", "small.yaml", "--timeline", "small.json.gz", "--schedule", "small.svg",
                   directory=self.directory).stdout
        packed, plain = (self.directory / "small.json.gz").read_bytes(), (self.directory / "plain.json").read_bytes()
        self.assertEqual(gzip.decompress(packed), plain)
        self.assertLess(10 * len(packed), len(plain))
        self.assertRegex(said, r"\ntimeline: small\.json\.gz, .*\nschedule: small\.svg, \d[\d.]* kB; a browser shows it\n$")
        json.loads(run("run", "small.yaml", "--json", "--timeline", "again.json", directory=self.directory).stdout)

    def test_what_cannot_be_is_refused_before_anything_runs(self):
        (self.directory / "small.yaml").write_text(SMALL, encoding="utf-8")
        for words, message in [
            (["--timeline", "x.json", "--timeline-ranks", "0,8"], "ranks from 0 to 7"),
            (["--timeline", "x.json", "--timeline-ranks", ""], "ranks from 0 to 7"),
            (["--timeline", "x.json", "--timeline-ranks", "1,-2"], "ranks from 0 to 7"),
            (["--timeline", "x.json", "--timeline-ranks", "3,1,3"], "rank 3 twice"),
            (["--timeline", "x.json", "--timeline-links", "-1"], "at least 0"),
            (["--timeline", "x.json", "--timeline-links", "many"], "many"),
            (["--timeline", "x.json", "--memory"], "nothing is simulated"),
            (["--timeline-ranks", "all"], "belongs to --timeline"),
        ]:
            done = run("run", "small.yaml", *words, directory=self.directory, expect=2)
            self.assertIn(message, done.stderr, words)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1)
        run("run", "small.yaml", "--timeline", "nowhere/x.json", directory=self.directory, expect=74)
        big = ["--set", "model=gpt3-175b", "--timeline", "x.json"]
        done = run("run", "small.yaml", *big, directory=self.directory, expect=3)
        self.assertIn("out_of_memory", done.stderr)
        self.assertEqual([path.name for path in self.directory.iterdir() if path.name.startswith("x.json")], [])


class Reader(unittest.TestCase):
    """The reader refuses what is wrong."""

    GOOD = [
        '{"ph":"M","name":"process_name","pid":1,"args":{"name":"p"}}',
        '{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}}',
        '{"ph":"B","pid":1,"tid":1,"ts":0.000000,"name":"a","cat":"c","args":{}}',
        '{"ph":"E","pid":1,"tid":1,"ts":1.000000,"name":"a"}',
        '{"ph":"B","pid":1,"tid":1,"ts":1.000000,"name":"b","cat":"c","args":{}}',
        '{"ph":"E","pid":1,"tid":1,"ts":2.500000,"name":"b"}',
        '{"ph":"C","pid":1,"ts":1.000000,"name":"m","args":{"value":1}}',
        '{"ph":"C","pid":1,"ts":2.000000,"name":"m","args":{"value":0}}',
    ]

    def read(self, lines):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"displayTimeUnit":"ns","otherData":{},"traceEvents":[' + ",".join(lines) + "]}")
            file.flush()
            return Trace(file.name)

    def test_a_good_trace_is_read(self):
        trace = self.read(self.GOOD)
        self.assertEqual((trace.end, trace.thread(1, "t")[1][:3]), (2_500_000, (1_000_000, 2_500_000, "b")))

    def test_each_fault_is_found(self):
        faults = {
            "no name of the process": self.GOOD[1:], "no name of the thread": self.GOOD[:1] + self.GOOD[2:],
            "named twice": self.GOOD[:1] * 2 + self.GOOD[1:], "no end": self.GOOD[:-3] + self.GOOD[-2:],
            "overlap": [line.replace('"ts":1.000000,"name":"b"', '"ts":0.900000,"name":"b"') for line in self.GOOD],
            "inside": [self.GOOD[i] for i in (0, 1, 2, 4, 3, 5, 6, 7)], "back": self.GOOD[:-2] + self.GOOD[:-3:-1],
            "decimals": [line.replace("2.500000", "2.5") for line in self.GOOD],
            "another's end": [line.replace('"ts":2.500000,"name":"b"', '"ts":2.500000,"name":"a"') for line in self.GOOD],
            "key": [line.replace('"cat"', '"category"') for line in self.GOOD],
            "phase": [line.replace('"ph":"C"', '"ph":"Q"') for line in self.GOOD],
            "negative": [line.replace('"value":1', '"value":-1') for line in self.GOOD],
        }
        for fault, lines in faults.items():
            with self.assertRaises((AssertionError, AttributeError, IndexError), msg=fault):
                self.read(lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)
