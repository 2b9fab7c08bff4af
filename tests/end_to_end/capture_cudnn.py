"""What stands in for cuDNN records graphs of its backend API and calls of its legacy API, and `manyworlds program` says what
they cost: tests/capture/attention.cu and convolution.cu. Skipped where there is no clang; where cuDNN's header is installed,
numbers are compared with it."""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from cuda_programs import CLANG, LACKING, SOURCES, compile_cuda, libraries_of
from program import ROOT, run

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
HEADERS = pathlib.Path(NVCC).resolve().parent.parent / "include" if NVCC else pathlib.Path("none")
ROOM = ROOT / "experiments" / "capture" / "cudnn"
SAMPLES, HEADS, KEY_HEADS, TOKENS, WIDTH = 3, 8, 2, 256, 64  # of attention.cu
FORWARD = ["matmul", "mul", "gen_index", "gen_index", "cmp_ge", "binary_select", "reduction_max", "sub", "exp", "reduction_add",
           "log", "add", "div", "matmul"]
BACKWARD = ["mul", "reduction_add", "matmul", "mul", "sub", "exp", "reshape", "matmul", "matmul", "sub", "mul", "mul", "reshape",
            "matmul", "reshape", "matmul"]


def without_times(lines):
    return [{key: value for key, value in line.items() if key != "at_ns"} for line in lines]


def convolution_operations(images, filters, height, width, channels, rows, columns):
    """Multiplications and additions of a convolution, counted as its definition has them: one of each for every result, and
    every element of a filter that it takes; `channels` are those of a group."""
    return sum(2 * filters * height * width * channels * rows * columns for _ in range(images))


class CaptureCudnn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="manyworlds-cudnn-")
        cls.directory = pathlib.Path(cls.folder.name)
        cls.attention = compile_cuda("attention", cls.directory)
        cls.convolution = compile_cuda("convolution", cls.directory)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def capture(self, program, *arguments, cuda=13):
        """The finished process, and the lines of its record, which stays in `records`."""
        records = self.directory / "records"
        shutil.rmtree(records, ignore_errors=True)
        records.mkdir()
        environment = {"LD_LIBRARY_PATH": str(libraries_of(cuda)), "MANYWORLDS_CAPTURE": str(records),
                       "MANYWORLDS_CAPTURE_GPU": "h100_sxm", "PATH": os.environ["PATH"]}
        done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
        return done, [json.loads(line) for line in (records / "rank0.jsonl").read_text(encoding="utf-8").splitlines()]

    def program(self, *words):
        """What `manyworlds program` says of the records, and its kernels."""
        told = run("program", "records", "--steps", "all", "--to", "program.jsonl", *words, directory=self.directory).stdout
        lines = [json.loads(line) for line in (self.directory / "program.jsonl").read_text().splitlines()]
        return told, [line for line in lines if "kernel" in line]

    def assert_fails(self, program, argument, said):
        """The program's own error, which is in its record too."""
        done, lines = self.capture(program, argument)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(said, done.stdout)
        failed = [line for line in lines if "cudnn_error" in line]
        self.assertEqual(len(failed), 1, lines)
        self.assertTrue(done.stdout.strip().endswith(f"{failed[0]['call']}: {failed[0]['because']}"), (done, failed))
        if any(line["call"] == "cudnnBackendExecute" and "plan" in line for line in lines):
            self.assertIn("1 calls returned an error, and are left out", self.program()[0])

    def test_a_graph_is_recorded_with_its_plan_and_executions_name_it(self):
        for cuda in (12, 13):
            done, lines = self.capture(compile_cuda("attention", self.directory, cuda=cuda), cuda=cuda)
            self.assertEqual((done.returncode, done.stdout), (0, f"91900 {cuda}\n"), (done, lines[-2:]))
        forward, backward = (line for line in lines if line["call"] == "cudnnBackendFinalize")
        self.assertEqual([one["operation"] for one in forward["operations"]], FORWARD)
        self.assertEqual([one["operation"] for one in backward["operations"]], BACKWARD)
        self.assertEqual(forward["operations"][0], {"operation": "matmul", "inputs": [["a", 1], ["b", 2]], "outputs": [["c", 100]]})
        tensors = {tensor["id"]: tensor for tensor in forward["tensors"]}
        self.assertEqual(tensors[2], {"id": 2, "dims": [SAMPLES, KEY_HEADS, WIDTH, TOKENS],
                                      "strides": [KEY_HEADS * TOKENS * WIDTH, TOKENS * WIDTH, 1, WIDTH], "dtype": "bf16"})
        self.assertTrue(tensors[100]["virtual"] and tensors[6]["by_value"])
        runs = [line for line in lines if line["call"] == "cudnnBackendExecute"]
        self.assertEqual([(line["plan"], line["stream"]) for line in runs], [(0, 2), (1, 2), (1, 2)])
        self.assertEqual(runs[0]["data"], [[1, [1, 0]], [2, [1, 0]], [6, "host"], [7, "host"], [5, [1, 0]], [3, [1, 0]], [4, [1, 0]]])
        self.assertNotIn("beyond_allocation", runs[0])

    def test_attention_is_found_by_its_structure_with_its_shape(self):
        self.capture(self.attention)
        told, kernels = self.program()
        shape = {"queries": TOKENS, "keys": TOKENS, "width": WIDTH, "batch": SAMPLES * HEADS, "key_batch": SAMPLES * KEY_HEADS,
                 "dtype": "bf16"}
        self.assertEqual([(line["kernel"], line["attention"]) for line in kernels],
                         [("cudnn attention_forward", {"class": "cudnn_forward", "causal": True, **shape}),
                          *[("cudnn attention_backward", {"class": "cudnn_backward", "causal": False, **shape})] * 2])
        self.assertNotIn("have no time", told)

    def test_a_graph_that_is_not_understood_is_named_and_a_table_gives_its_time(self):
        self.capture(self.attention, "unknown")
        told, kernels = self.program()
        self.assertIn("1 kernels of 1 launches have no time, as nothing says their cost: 'cudnn matmul, matmul'", told)
        self.assertEqual(set(kernels[-1]), {"kernel", "stream"})
        (self.directory / "kernels.yaml").write_text('gpu: h100_sxm\nkernels:\n  - {kernel: "cudnn matmul, *", us: 12.5}\n')
        told, kernels = self.program("--kernels", "kernels.yaml")
        self.assertNotIn("have no time", told)
        self.assertEqual(kernels[-1]["us"], 12.5)

    def test_convolutions_have_the_operations_of_their_definition_in_each_direction(self):
        done, lines = self.capture(self.convolution)
        self.assertEqual(done.returncode, 0, (done, lines[-2:]))
        told, kernels = self.program()
        names = ["convolution_forward", "convolution_data_gradient", "convolution_weight_gradient"]
        layers = ["batch_norm_forward", "activation_forward", "max_pooling_forward"]
        self.assertEqual([line["kernel"] for line in kernels], [f"cudnn {name}" for name in [*names, *names, *layers]])
        for of, operations, elements in (
                (kernels[:3], convolution_operations(16, 128, 28, 28, 64, 3, 3), 16 * 64 * 56**2 + 128 * 64 * 9 + 16 * 128 * 28**2),
                (kernels[3:6], convolution_operations(8, 64, 28, 28, 32 // 4, 5, 5), 8 * 32 * 28**2 + 64 * 8 * 25 + 8 * 64 * 28**2)):
            for line in of:
                self.assertEqual((2 * math.prod(line["gemm"]), line["bytes"], line["dtype"]), (operations, 2 * elements, "bf16"))
        self.assertEqual([line["gemm"][3] for line in kernels[3:6]], [4] * 3)
        result = 8 * 64 * 28**2
        self.assertEqual([line["bytes"] for line in kernels[6:]],
                         [2 * 2 * result + 6 * 4 * 64, 2 * 2 * result, 2 * (result + result // 4)])
        self.assertIn("3 matrix products in fp16 take what they would in bf16", told)
        call = next(line for line in lines if line["call"] == "cudnnConvolutionForward")
        self.assertEqual((call["stream"], call["operations"][0]["paddings"], call["tensors"][0]["strides"]),
                         (2, [2, 2], [28 * 28 * 32, 1, 28 * 32, 32]))
        _, lines = self.capture(self.convolution, "small")
        self.assertTrue(all(line["beyond_allocation"] == "data" for line in lines if "operations" in line and "plan" not in line))

    def test_vectors_of_channels_count_as_their_elements(self):
        _, lines = self.capture(self.convolution, "vectors")
        of_vectors = [line for line in lines if line["call"] == "cudnnBackendFinalize"][3]
        self.assertEqual([tensor["dims"] for tensor in of_vectors["tensors"]], [[1, 64, 6, 6], [32, 64, 3, 3], [1, 32, 6, 6]])
        told, _ = self.program()  # int8 has no rate
        self.assertIn("1 kernels of 1 launches have no time, as nothing says their cost: 'cudnn convolution_forward'", told)

    def test_two_captures_are_equal_but_for_times(self):
        for program in (self.attention, self.convolution):
            first, second = (without_times(self.capture(program)[1]) for _ in range(2))
            self.assertEqual(first, second)
            self.assertGreater(len(first), 6)

    def test_what_is_used_wrong_is_the_programs_own_error(self):
        for wrong, said in (
                ("unfinalized", "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED: cudnnBackendExecute: the plan is not finalized"),
                ("pack", "CUDNN_STATUS_BAD_PARAM: cudnnBackendExecute: the variant pack has no pointer of tensor 6"),
                ("dimensions", "CUDNN_STATUS_BAD_PARAM: cudnnBackendFinalize: CUDNN_BACKEND_TENSOR_DESCRIPTOR: "
                               "CUDNN_ATTR_TENSOR_DIMENSIONS is not set"),
                ("attribute", "CUDNN_STATUS_BAD_PARAM: cudnnBackendSetAttribute: CUDNN_BACKEND_TENSOR_DESCRIPTOR has no attribute 4711"),
                ("type", "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE"),
                ("late", "CUDNN_BACKEND_TENSOR_DESCRIPTOR is finalized: its attributes stay"),
                ("settings", "CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR must be a CUDNN_BACKEND_POINTWISE_DESCRIPTOR"),
                ("shapes", "[3,8,256,64] by [3,8,256,64] is not [3,8,256,256]")):
            self.assert_fails(self.attention, wrong, said)
        self.assert_fails(self.convolution, "shape", "cudnnConvolutionForward: y is not of the shape that follows from the other")
        self.assert_fails(self.convolution, "undefined", "cudnnConvolutionForward: y has no dimensions")

    def test_what_is_not_served_ends_the_capture_with_its_name(self):
        for program, argument, said in (
                (self.attention, "kind", "cudnnBackendCreateDescriptor: a descriptor of the type 28 is not served"),
                (self.convolution, "unserved", "cudnnRNNForward is not modelled")):
            done, lines = self.capture(program, argument)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(said, done.stderr)
            self.assertEqual(lines[-1]["call"], "stopped")
            self.assertIn(said, lines[-1]["because"])

    @unittest.skipUnless((HEADERS / "cudnn_graph.h").exists(), "no header of cuDNN is installed")
    def test_numbers_are_those_of_the_installed_header(self):
        header = (HEADERS / "cudnn_graph.h").read_text()
        numbers = {name: int(number) for name, number in
                   re.findall(r"\bCUDNN_(\w+)(?: CUDNN_DEPRECATED_ENUM)?\s*=\s*(\d+)\b", header)}
        attributes = (ROOM / "attributes.cpp").read_text()
        found = re.findall(r'\{(\d+), +"(\w+)", +ValueType', attributes)
        self.assertGreater(len(found), 200)
        self.assertEqual([(name, int(number)) for number, name in found], [(name, numbers[f"ATTR_{name}"]) for _, name in found])
        kinds = re.findall(r'\{(\d+), +"(\w+)", +"', attributes)
        self.assertGreater(len(kinds), 30)
        self.assertEqual([(name, int(number)) for number, name in kinds],
                         [(name, numbers[f"BACKEND_{name}_DESCRIPTOR"]) for _, name in kinds])
        values = (ROOM / "values.cpp").read_text()
        for table, prefix in (("kPointwise", "POINTWISE_"), ("kReductions", "REDUCE_TENSOR_"), ("kNorms", ""),
                              ("kResamples", "RESAMPLE_")):
            rows = re.findall(r'\{(\d+), +"(\w+)"\}', re.search(rf"{table}\[\] = \{{(.*?)\}};", values, re.DOTALL).group(1))
            self.assertEqual([(name, int(number)) for number, name in rows],
                             [(name, numbers[prefix + name.upper()]) for _, name in rows])
            self.assertGreater(len(rows), 4)

    @unittest.skipUnless((HEADERS / "cudnn.h").exists(), "no header of cuDNN is installed")
    def test_layouts_are_those_of_the_installed_header(self):
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{ROOT}", f"-I{HEADERS}",
                        SOURCES / "cudnn_layouts.cpp"], check=True)


if __name__ == "__main__":
    if not CLANG:
        print(LACKING)
        sys.exit(77)
    unittest.main()
