"""What an operator of ATen costs: the shape of a matrix product, or the bytes that a kernel reads and writes."""

import functools
import math

import torch

from .recorder import Unsupported

DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "bf16"}
# Operators that launch nothing: they allocate, or tell of a tensor.
FREE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "lift_fresh", "detach", "set_", "resize_", "alias"}
# Operators that write a result without reading what they write into.
OVERWRITE = {"zero_", "fill_", "copy_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_", "zeros", "ones"}
# Operators that read as many bytes of their first tensor as they write: rows that indices choose.
CHOOSE = {"embedding", "index", "index_select", "gather", "take", "slice_backward", "select_backward"}


@functools.lru_cache(maxsize=None)
def written_arguments(function):
    """Names of the arguments that an operator writes, by its schema."""
    return {argument.name for argument in function._schema.arguments if argument.alias_info is not None and argument.alias_info.is_write}


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def size_of(tensor):
    """Bytes that reading a tensor once moves: an expanded one is read where it is."""
    count = 1
    for extent, stride in zip(tensor.shape, tensor.stride()):
        count *= extent if stride else min(extent, 1)
    return count * tensor.element_size()


def gemm(name, arguments, outputs):
    """([m, n, k, batch], dtype) of an operator that is a matrix product, otherwise None."""
    if name in ("mm", "bmm"):
        left, right = arguments[:2]
    elif name in ("addmm", "baddbmm", "_addmm_activation", "addbmm"):
        left, right = arguments[1:3]
    elif name in ("mv", "addmv"):
        left, right = arguments[-2:] if name == "mv" else arguments[1:3]
        return [left.shape[0], 1, left.shape[1], 1], left.dtype
    elif name == "convolution":
        image, weight = arguments[:2]
        return convolution(image, weight, image if arguments[6] else outputs[0], arguments[8]), image.dtype
    elif name == "convolution_backward":
        gradient, image, weight = arguments[:3]
        transposed, groups, wanted = arguments[7], arguments[9], arguments[10]
        m, n, k, batch = convolution(image, weight, image if transposed else gradient, groups)
        return [m, n, k * (int(wanted[0]) + int(wanted[1])) or 1, batch], image.dtype
    else:
        return None
    if 0 in left.shape or 0 in right.shape:
        return None
    return [left.shape[-2], right.shape[-1], left.shape[-1], left.shape[0] if left.dim() == 3 else 1], left.dtype


def convolution(image, weight, places, groups):
    """[m, n, k, groups] of a convolution as the product of its patches and its filters.

    `places` has as many places as filters are put on: the output's, or of a transposed one, whose weight is [inputs, outputs of a group,
    ...], the input's: it is the gradient of a convolution by its image, and as large a product.
    """
    return [image.shape[0] * math.prod(places.shape[2:]), weight.shape[0] // groups, math.prod(weight.shape[1:]), groups]


def moved_bytes(function, name, named, outputs):
    """Bytes that a kernel reads and writes. `named` has the operator's arguments by name, `outputs` the tensors that it made."""
    written = written_arguments(function)
    made = sum(size_of(tensor) for tensor in outputs)
    if name in CHOOSE:
        others = [tensor for key, value in list(named.items())[1:] for tensor in tensors_of(value)]
        return 2 * made + sum(map(size_of, others))
    total = made
    if name.endswith("_like"):
        return total
    for key, value in named.items():
        for tensor in tensors_of(value):
            total += size_of(tensor) * (2 if key in written and key != "out" and name not in OVERWRITE else 1)
    return total


def named_arguments(function, arguments, keywords):
    """Arguments of an operator by the names of its schema."""
    names = [argument.name for argument in function._schema.arguments]
    return {**dict(zip(names, arguments)), **keywords}


def dtype_of(dtype):
    """The name of a dtype in programs; float16 counts as bf16, whose rates it has."""
    if dtype not in DTYPES:
        raise Unsupported(f"a matrix product of {dtype} on the GPU: the cost model has bf16, fp16 and fp32")
    return DTYPES[dtype]
