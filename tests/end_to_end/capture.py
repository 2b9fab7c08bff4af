"""What stands in for CUDA's libraries runs programs that clang compiled without a toolkit, and records what they did.

Skipped where there is no clang; where nvcc is there, layouts and records are compared with its own."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from cuda_programs import CLANG, LACKING, SOURCES, compile_cuda, libraries_of
from program import ROOT

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
HEADERS = pathlib.Path(NVCC).resolve().parent.parent / "include" if NVCC else pathlib.Path("none")


def without_times(lines):
    return [{key: value for key, value in line.items() if key != "at_ns"} for line in lines]


class Capture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.two_streams = cls.compiled("two_streams", registered=True)
        cls.unregistered = cls.compiled("two_streams", registered=False)
        cls.arguments = cls.compiled("arguments", registered=True)
        cls.products = cls.compiled("products", registered=True)
        cls.devices = cls.compiled("devices", registered=True)
        cls.collectives = cls.compiled("collectives", registered=True)
        cls.nodes = cls.compiled("nodes", registered=True)
        cls.variables = cls.compiled("variables", registered=True)
        cls.occupancy = cls.compiled("occupancy", registered=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def compiled(cls, name, registered, cuda=13):
        return compile_cuda(name, pathlib.Path(cls.folder.name), registered, cuda=cuda)

    def capture(self, program, *arguments, into=None, cuda=13, **settings):
        """The finished process, and the lines of its record; `into` is a folder to write in, else a new one."""
        with tempfile.TemporaryDirectory() as made:
            into = into or made
            environment = {"LD_LIBRARY_PATH": str(libraries_of(cuda)), "MANYWORLDS_CAPTURE": into,
                           "MANYWORLDS_CAPTURE_GPU": "a100_80", "PATH": os.environ["PATH"], **settings}
            environment = {key: value for key, value in environment.items() if value is not None}
            done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
            record = pathlib.Path(into) / f"rank{settings.get('MANYWORLDS_RANK', 0)}.jsonl"
            lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
            return done, [json.loads(line) for line in lines]

    def assert_refused(self, done, lines, said):
        self.assertEqual(done.returncode, 2, done)
        self.assertIn(said, done.stderr)
        self.assertEqual(lines[-1]["call"], "stopped")
        self.assertIn(said, lines[-1]["because"])

    def test_variables_of_devices_and_rows_are_copied_as_they_are_asked_for(self):
        """Copies to a symbol and from it are bounded by the variable, and those of rows move their widths; each line is as it must be by
        the arguments in tests/capture/variables.cu, for both versions of CUDA."""
        expected = [["cudaMemcpyToSymbol", "taps", [1, 0], "host", 256, "host_to_device", 0],
                    ["cudaMemcpyToSymbolAsync", "taps", [1, 240], "host", 16, "host_to_device", 2],
                    ["cudaMemcpyFromSymbol", "counter", "host", [2, 8], 8, "device_to_host", 0],
                    ["cudaMemcpy2D", None, [3, 0], "host", 40 * 3, "host_to_device", 0],
                    ["cudaMemset2D", None, [3, 0], None, 700 * 30, None, 0],
                    ["cudaMemcpy2DAsync", None, "host", [3, 0], 60 * 3, "device_to_host", 2]]
        for cuda, program in ((13, self.variables), (12, self.compiled("variables", registered=True, cuda=12))):
            done, lines = self.capture(program, cuda=cuda, MANYWORLDS_WORLD="2")
            self.assertEqual((done.returncode, lines[-1]["call"]), (0, "end"), done)
            keys = ("call", "symbol", "to", "from", "bytes", "direction", "stream")
            moved = [[line.get(key) for key in keys] for line in lines
                     if line["call"].startswith(("cudaMemcpy", "cudaMemset")) and "error" not in line]
            self.assertEqual(moved, expected)
            self.assertEqual([line["error"] for line in lines if "error" in line], [1, 13, 1, 12])
            reduced = [line for line in lines if line["call"] == "ncclAllReduce"]
            self.assertEqual([line.get("nccl_error", line["reduction"]) for line in reduced], ["scaled_sum", 4])

    def test_calls_are_recorded_in_order_with_streams_events_and_kernels(self):
        done, lines = self.capture(self.two_streams)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done)
        self.assertEqual([line["call"] for line in lines],
                         ["capture", "cudaSetDevice", "cudaMalloc", "cudaMalloc", "cudaStreamCreate", "cudaStreamCreate",
                          "cudaEventCreate", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernel", "cudaEventRecord",
                          "cudaStreamWaitEvent", "cudaLaunchKernel", "cudaMemcpy", "cudaDeviceSynchronize", "cudaMalloc",
                          "cudaFree", "cudaFree", "cudaStreamDestroy", "end"])
        compute, other = (line["stream"] for line in lines if line["call"] == "cudaStreamCreate")
        a, b = (line["allocation"] for line in lines[2:4])
        event = lines[6]["event"]
        self.assertEqual({key: lines[7][key] for key in ("to", "from", "bytes", "direction", "stream")},
                         {"to": [a, 0], "from": "host", "bytes": 4096, "direction": "host_to_device", "stream": compute})
        self.assertEqual((lines[10]["event"], lines[10]["stream"]), (event, compute))
        self.assertEqual((lines[11]["event"], lines[11]["stream"]), (event, other))
        scale, add = (line for line in lines if line["call"] == "cudaLaunchKernel")
        self.assertEqual((scale["kernel"], scale["grid"], scale["block"], scale["stream"], scale["arguments"]),
                         ("scale(float*, float, int)", [8, 1, 1], [128, 1, 1], compute, [[a, 0], 0.5, 1024]))
        self.assertEqual((add["kernel"], add["grid"], add["block"], add["shared_bytes"], add["stream"], add["arguments"]),
                         ("void add<float>(float const*, float*, unsigned long, bool)", [2, 3, 4], [32, 4, 1], 1024, other,
                          [[a, 0], [b, 64], 1024, True]))

    def test_arguments_are_read_as_the_kernels_name_tells_their_types(self):
        done, lines = self.capture(self.arguments)
        self.assertEqual(done.returncode, 0, done)
        of = {line["kernel"].split("(")[0].split("<")[0].split()[-1]: line.get("arguments")
              for line in lines if line["call"] == "cudaLaunchKernel"}
        self.assertEqual(of["integers"], [-2**7, 2**8 - 1, -2**15, 2**16 - 1, -2**31, 2**32 - 1, -2**63, 2**64 - 1])
        tenth = struct.unpack("f", struct.pack("f", 0.1))[0]
        self.assertEqual(of["reals"], [tenth, 0.1, "nan", "-inf", True])
        # One past the end of an allocation is not in it.
        self.assertEqual(of["pointers"], [[1, 0], None, "host", [1, 99], "host"])
        self.assertEqual(of["others"], [{"unread": "Pair"}, {"unread": "Width<3>"}, 3])
        self.assertEqual(of["templated"][1], 2.5)
        self.assertIn("unread", of["templated"][0])
        self.assertEqual(of["nothing"], [])
        self.assertIsNone(of["with_c_linkage"])

    def test_two_captures_are_equal_but_for_times(self):
        first, second = (without_times(self.capture(self.two_streams)[1]) for _ in range(2))
        self.assertEqual(first, second)
        self.assertGreater(len(first), 10)

    def test_memory_ends_at_the_programs_own_call(self):
        # Both small allocations take 4096 + 8192 bytes; of 64 MiB, 62 MiB are then free as whole pages of 2 MiB.
        done, _ = self.capture(self.two_streams, "62", MANYWORLDS_CAPTURE_MEMORY="64M")
        self.assertEqual(done.stdout, "done\n")
        done, lines = self.capture(self.two_streams, "63", MANYWORLDS_CAPTURE_MEMORY="64M")
        self.assertEqual((done.returncode, done.stdout), (1, "large: out of memory\n"))
        refused = lines[-2]
        self.assertEqual((refused["call"], refused["bytes"], refused["used_bytes"], refused["error"]),
                         ("cudaMalloc", 63 << 20, 12288, 2))

    def test_graphs_are_recorded_where_they_are_captured_and_launched(self):
        done, lines = self.capture(self.two_streams, "1", "captured")
        self.assertEqual(done.stdout, "done\n")
        calls = [line["call"] for line in lines]
        begin = calls.index("cudaStreamBeginCapture")
        self.assertEqual([call for call in calls[begin:] if not call.startswith("cudaStreamIs")][:9],
                         ["cudaStreamBeginCapture", "cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent",
                          "cudaStreamEndCapture", "cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphLaunch",
                          "cudaGraphLaunch"])
        self.assertEqual([line["graph"] for line in lines if line["call"] == "cudaGraphLaunch"], [0, 0])

    def test_memory_of_a_pool_is_an_allocation(self):
        done, lines = self.capture(self.two_streams, "1", "pool")
        self.assertEqual(done.stdout, "done\n")
        taken, = (line for line in lines if line["call"] == "cudaMallocAsync")
        given, = (line for line in lines if line["call"] == "cudaFreeAsync")
        self.assertEqual((taken["bytes"], taken["counted_bytes"], taken["stream"]), (1 << 20, 1 << 20, 3))
        self.assertEqual((given["pointer"], given["bytes"], given["stream"]), ([taken["allocation"], 0], 1 << 20, 3))

    def test_device_memory_larger_than_the_hosts_costs_nothing(self):
        done, lines = self.capture(self.two_streams, str(10 << 20), MANYWORLDS_CAPTURE_MEMORY="20480G")  # 10 TiB
        self.assertEqual(done.stdout, "done\n", lines[-2:])

    def test_a_launch_that_is_not_registered_is_refused_by_name(self):
        self.assert_refused(*self.capture(self.unregistered), "cudaLaunchKernel: the kernel is not registered")
        self.assert_refused(*self.capture(self.two_streams, "1", "unregistered"), "the kernel is not registered")

    def test_a_function_that_is_not_modelled_is_refused_by_name(self):
        self.assert_refused(*self.capture(self.two_streams, "1", "graph"), "cudaGraphClone is not modelled")

    def test_programs_of_cuda_12_are_given_its_layouts_and_signatures(self):
        for cuda, version in ((12, 12090), (13, 13000)):
            program = self.compiled("versions", True, cuda)
            done, lines = self.capture(program, cuda=cuda)
            self.assertEqual(done.returncode, 0, (done, lines[-3:]))
            # 108 multiprocessors, and 163 KiB of shared memory for a block that asks for it.
            self.assertEqual(done.stdout, f"{version} {10000 * cuda} NVIDIA A100-SXM4-80GB 108 {163 << 10}\n")
            self.assertEqual(lines[0]["cuda"], cuda)
            asked, = (line for line in lines if line["call"] == "cudaRuntimeGetVersion")
            self.assertEqual(asked["version"], version)
            of = [(line["from"], line["to"]) for line in lines if line["call"] == "cudaGraphAddDependencies"]
            self.assertEqual(of, [([0], [1])] * (2 if cuda == 12 else 1))
            self.assertEqual([line.get("error") for line in lines if line["call"] == "cudaMemAdvise"],
                             [None, None, 1] if cuda == 12 else [None, 1])
            name = "cudaStreamGetCaptureInfo" + ("_v2" if cuda == 12 else "")
            self.assert_refused(*self.capture(program, "nodes", cuda=cuda), f"{name} of a captured stream")
            name = "cudaGraphAddDependencies" + ("_v2" if cuda == 12 else "")
            self.assert_refused(*self.capture(program, "edges", cuda=cuda), f"{name}: edges of a kind of their own")

    def test_a_program_has_one_record_with_both_versions_of_cuda(self):
        _, expected = self.capture(self.two_streams, "1", "captured")
        done, lines = self.capture(self.compiled("two_streams", True, 12), "1", "captured", cuda=12)
        self.assertEqual(done.stdout, "done\n")
        self.assertEqual(without_times(lines[1:]), without_times(expected[1:]))

    def test_nodes_of_a_graph_are_recorded_with_what_they_wait_for(self):
        done, lines = self.capture(self.nodes, "2")
        self.assertEqual((done.returncode, done.stdout), (0, "done 4\n"), (done, lines[-2:]))
        added = [line for line in lines if line["call"].startswith("cudaGraphAdd") and "node" in line]
        self.assertEqual([(line["call"].removeprefix("cudaGraphAdd"), line["graph"], line["node"], line["after"])
                          for line in added],
                         [("MemcpyNode", 0, 0, []), ("MemsetNode", 0, 1, []), ("KernelNode", 0, 2, [0, 1]),
                          ("KernelNode", 0, 3, [2]), ("KernelNode", 0, 4, [2]), ("EmptyNode", 0, 5, [3]),
                          ("MemcpyNode", 0, 6, [5]), ("HostNode", 0, 7, [6])])
        self.assertEqual([(line["to"], line["from"], line["bytes"], line["direction"]) for line in added if "direction" in line],
                         [([1, 0], "host", 4096, "host_to_device"), ("host", [1, 0], 4096, "device_to_host")])
        self.assertEqual((added[1]["to"], added[1]["bytes"]), ([2, 0], 4096))
        self.assertEqual((added[2]["kernel"], added[2]["grid"], added[2]["block"], added[2]["arguments"]),
                         ("join(float*, float const*, int)", [8, 1, 1], [128, 1, 1], [[1, 0], [2, 0], 1024]))
        later, = (line for line in lines if line["call"] == "cudaGraphAddDependencies")
        self.assertEqual((later["graph"], later["from"], later["to"]), (0, [4], [5]))
        changed, wrong = (line for line in lines if line["call"] == "cudaGraphExecKernelNodeSetParams")
        self.assertEqual((changed["instance"], changed["node"], changed["grid"], changed["arguments"]), (0, 4, [1, 1, 1], [[2, 0], 2]))
        self.assertEqual(wrong["error"], 1)
        self.assertEqual([(line["graph"], line["instance"], line["stream"]) for line in lines if line["call"] == "cudaGraphLaunch"],
                         [(0, 0, 2)] * 4)
        updates = [line for line in lines if line["call"] == "cudaGraphExecUpdate"]
        self.assertEqual([(line["graph"], line["instance"], line.get("error")) for line in updates], [(0, 0, None), (1, 0, 910)])

    def test_functions_of_the_driver_are_refused_by_name(self):
        self.assert_refused(*self.capture(self.two_streams, "1", "driver"),
                            "cudaGetDriverEntryPoint: cuTensorMapEncodeTiled of CUDA's driver is not modelled")

    def test_graphs_that_cannot_be_made_are_the_programs_error_or_refused_by_name(self):
        for wrong, said in (("cycle", "instantiate: invalid argument\n"),
                            ("other", "a node that waits for one of another graph: invalid argument\n")):
            done, _ = self.capture(self.nodes, "2", wrong)
            self.assertEqual((done.returncode, done.stdout), (1, said))
        for refused, said in (("captured", "cudaGraphAddEmptyNode of a graph that was captured of streams is not modelled"),
                              ("extra", "cudaGraphAddKernelNode: arguments by 'extra' are not modelled"),
                              ("gaps", "cudaGraphAddMemcpyNode of rows with gaps between them is not modelled"),
                              ("array", "cudaGraphAddMemcpyNode of arrays is not modelled"),
                              ("clone", "cudaGraphClone is not modelled")):
            self.assert_refused(*self.capture(self.nodes, "2", refused), said)

    def test_occupancy_follows_from_threads_and_shared_memory_and_says_what_is_assumed(self):
        # A multiprocessor has 64 warps, 32 blocks, and 164 or 228 KiB of shared memory, of which a block takes 1 KiB more
        # than it asks for, and none takes more than 48 KiB before it was allowed to.
        for gpu, multiprocessors, shared_kib in (("a100_80", 108, 164), ("h100_sxm", 132, 228)):
            done, lines = self.capture(self.occupancy, MANYWORLDS_CAPTURE_GPU=gpu)
            self.assertEqual(done.returncode, 0, (done, lines[-2:]))
            answers = [(256, 0, 64 // 8), (64, 0, 32), (1000, 0, 64 // 32), (1025, 0, 0), (256, 40 << 10, shared_kib // 41),
                       (256, 100 << 10, 0), (256, 100 << 10, shared_kib // 101)]
            self.assertEqual(done.stdout.splitlines(), ["1024 threads, 49152 bytes"] + [f"{a} {b} {c}" for a, b, c in answers])
            queries = [line for line in lines if line["call"].startswith("cudaOccupancy")]
            self.assertEqual([(line["threads"], line["shared_bytes"], line["blocks"]) for line in queries[::2]], answers)
            assuming = [*queries, *(line for line in lines if line["call"] == "cudaFuncGetAttributes")]
            self.assertEqual({line["assumed"] for line in assuming}, {"at most 32 registers a thread, no static shared memory"})
            launches = [line["grid"][0] for line in lines if line["call"] == "cudaLaunchKernel"]
            self.assertEqual(launches, [8 * multiprocessors, 1])
        self.assert_refused(*self.capture(self.occupancy, "unregistered"),
                            "cudaOccupancyMaxActiveBlocksPerMultiprocessor: the kernel is not registered")
        done, _ = self.capture(self.occupancy, "large")
        self.assertEqual(done.stdout.splitlines()[-1], "a launch with 100 KiB: invalid argument")

    def test_an_impossible_launch_is_the_programs_own_error(self):
        done, _ = self.capture(self.two_streams, "1", "grid")
        self.assertEqual(done.stdout, "a launch of 2048 threads: invalid configuration argument\n")

    def test_a_host_that_touches_device_memory_faults_and_its_record_stays(self):
        done, lines = self.capture(self.two_streams, "1", "touch")
        self.assertEqual(done.returncode, -11)
        self.assertEqual(lines[-1]["call"], "cudaDeviceSynchronize")

    def test_settings_that_are_wrong_are_said(self):
        for settings, said in [({"MANYWORLDS_CAPTURE": None}, "MANYWORLDS_CAPTURE: not set"),
                               ({"MANYWORLDS_CAPTURE": "/nowhere"}, "No such file or directory"),
                               ({"MANYWORLDS_CAPTURE_GPU": "a100"}, "a100_80"),
                               ({"MANYWORLDS_CAPTURE_MEMORY": "80GB"}, "'80GB' is not a number of bytes"),
                               ({"MANYWORLDS_RANK": "2", "MANYWORLDS_WORLD": "2"}, "2 is not below MANYWORLDS_WORLD, 2"),
                               ({"MANYWORLDS_WORLD": "two"}, "'two' is not a whole number")]:
            done, _ = self.capture(self.two_streams, **settings)
            self.assertEqual((done.returncode, done.stdout), (2, ""), settings)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def capture_ranks(self, size, ranks):
        with tempfile.TemporaryDirectory() as into:
            return [self.capture(self.collectives, str(size), f"{into}/id", into=into, MANYWORLDS_RANK=str(rank),
                                 MANYWORLDS_WORLD=str(size)) for rank in ranks]

    def test_collectives_are_recorded_with_their_communicator(self):
        for rank, (done, lines) in enumerate(self.capture_ranks(4, range(4))):
            self.assertEqual(done.returncode, 0, done)
            calls = {line["call"]: line for line in lines}
            opened = calls["ncclCommInitRank"]
            self.assertEqual((opened["key"], opened["size"], opened["in_rank"]), ("manyworlds 0.0", 4, rank))
            of = [line for line in lines if line["call"].startswith("nccl") and "count" in line]
            self.assertEqual([(line["call"], line["count"], line["dtype"], line.get("reduction")) for line in of],
                             [("ncclAllReduce", 1000, "fp32", "avg"), ("ncclAllGather", 1000, "bf16", None),
                              ("ncclReduceScatter", 1000, "fp32", "sum"), ("ncclBroadcast", 1000, "fp32", None),
                              ("ncclReduce", 1000, "fp32", "sum"), ("ncclSend", 10, "fp32", None),
                              ("ncclRecv", 10, "fp32", None), ("ncclAllGather", 1001, "fp32", None),
                              ("ncclAllGather", 1200, "fp32", None)])
            self.assertEqual(calls["ncclReduceScatter"]["receive"], [1, 4000 * rank])
            self.assertEqual((calls["ncclBroadcast"]["root"], "send" in calls["ncclBroadcast"]), (1, rank == 1))
            self.assertEqual((calls["ncclSend"]["to"], calls["ncclRecv"]["from"]), ((rank + 1) % 4, (rank + 3) % 4))
            self.assertEqual(calls["ncclSend"]["group"], calls["ncclRecv"]["group"])
            self.assertNotIn("group", calls["ncclReduce"])
            self.assertEqual([line.get("nccl_error") for line in of], [None] * 8 + [4])
            self.assertEqual([line.get("beyond_allocation") for line in of[:8]], [None] * 7 + ["receive"])

    def test_communicators_are_split_into_the_groups_that_were_named(self):
        with tempfile.TemporaryDirectory() as into:
            settings = {"into": into, "MANYWORLDS_WORLD": "4"}
            done, lines = self.capture(self.collectives, "4", f"{into}/id", "split", **settings, MANYWORLDS_RANK="0",
                                       MANYWORLDS_CAPTURE_GROUPS="1:0,1")
            self.assert_refused(done, lines, 'for communicator 2: name its groups by --groups, as {"2": [[...], ...]}')
            keys = []
            for rank, groups in ((1, "1:0,1;2:1,3"), (3, "1:2,3;2:1,3")):
                done, lines = self.capture(self.collectives, "4", f"{into}/id", "split", **settings, MANYWORLDS_RANK=str(rank),
                                           MANYWORLDS_CAPTURE_GROUPS=groups)
                self.assertEqual(done.returncode, 0, done)
                none, rows, columns = (line for line in lines if line["call"] == "ncclCommSplit")
                self.assertNotIn("communicator", none)
                self.assertEqual([(line["communicator"], line["size"], line["in_rank"]) for line in (rows, columns)],
                                 [(1, 2, 1), (2, 2, rank // 2)])
                keys.append((rows["key"], columns["key"]))
            self.assertNotEqual(keys[0][0], keys[1][0])
            self.assertEqual(keys[0][1], keys[1][1])
        done, _ = self.capture(self.two_streams, MANYWORLDS_CAPTURE_GROUPS="1:0,1;2")
        self.assertIn("'1:0,1;2' is not the groups of rank 0, such as 1:0,1;2:0,2", done.stderr)

    def test_matrix_products_are_recorded_with_shape_type_and_stream(self):
        done, lines = self.capture(self.products)
        self.assertEqual(done.returncode, 0, done)
        of = [line for line in lines if line["call"].startswith("cublas")]
        self.assertEqual([[line[key] for key in ("call", "m", "n", "k", "batch", "dtypes", "transposed", "stream")]
                          for line in of[:3]],
                         [["cublasSgemm", 16, 24, 32, 1, ["fp32"] * 3, [False, True], 2],
                          ["cublasGemmStridedBatchedEx", 64, 48, 32, 12, ["bf16", "bf16", "fp32"], [True, False], 2],
                          ["cublasLtMatmul", 128, 8, 256, 1, ["bf16"] * 3, [True, False], 2]])
        self.assertEqual((of[0]["a"], of[0]["b"], of[0]["d"]), ([1, 0], [1, 4096], [1, 8192]))
        self.assertEqual([line.get("cublas_error") for line in of], [None, None, None, 7])

    def test_devices_have_memory_of_their_own_and_copy_to_each_other(self):
        done, lines = self.capture(self.devices, MANYWORLDS_CAPTURE_DEVICES="2")
        self.assertEqual(done.returncode, 0, (done, lines))
        self.assertEqual([line["device"] for line in lines if line["call"] == "cudaMalloc"], [0, 1])
        fits, too_large = (line for line in lines if line["call"] == "cudaMemcpyPeerAsync")
        self.assertEqual((fits["to"], fits["from"], fits["bytes"], fits["direction"], fits.get("error")),
                         ([2, 0], [1, 1024], 2 << 20, "device_to_device", None))
        self.assertEqual(too_large["error"], 1)

    @unittest.skipUnless((HEADERS / "cuda_runtime_api.h").exists(), "no header of CUDA is installed")
    def test_layouts_and_values_are_those_of_the_installed_headers(self):
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{ROOT}", f"-I{HEADERS}",
                        SOURCES / "layouts.cpp"], check=True)

    @unittest.skipUnless(NVCC, "nvcc is not there")
    def test_nvcc_and_clang_make_programs_of_one_record(self):
        made = pathlib.Path(self.folder.name) / "by_nvcc"
        subprocess.run([NVCC, "-cudart", "shared", "-DTWO_STREAMS_WITH_TOOLKIT", SOURCES / "two_streams.cu", "-o", made],
                       check=True)
        (by_nvcc, lines), (_, expected) = self.capture(made), self.capture(self.two_streams)
        self.assertEqual(by_nvcc.returncode, 0, by_nvcc)
        self.assertEqual(without_times(lines), without_times(expected))

    def test_one_rank_of_a_large_world_is_captured_alone(self):
        (done, lines), = self.capture_ranks(1024, [0])
        self.assertEqual((done.returncode, lines[-1]["call"]), (0, "end"), done)


if __name__ == "__main__":
    if not CLANG:
        print(LACKING)
        sys.exit(77)
    unittest.main()
