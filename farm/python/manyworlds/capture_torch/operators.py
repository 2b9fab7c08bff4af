"""Every operator that reaches ATen: run on meta tensors for its shapes, and recorded if it runs on the GPU."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import costs
from .recorder import Unsupported
from .storages import GPU, HOST, raw

try:
    from torch.utils._pytree import tree_map
except ImportError:  # pragma: no cover
    from torch.utils.pytree import tree_map

READS = {"_local_scalar_dense", "equal", "is_nonzero", "item"}


def overload_name(function):
    """`mm` of aten::mm.default."""
    return function._schema.name.split("::")[-1]


class Operators(TorchDispatchMode):
    """Records what it is asked to run. `wanted` is where a factory's tensor is to be."""

    def __init__(self, recorder, storages):
        super().__init__()
        self.recorder, self.storages = recorder, storages
        self.wanted = None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        with raw:
            return self._dispatch(function, args, dict(kwargs or {}))

    def _dispatch(self, function, args, kwargs):
        name = overload_name(function)
        inputs = costs.tensors_of(list(args) + list(kwargs.values()))
        metas = [tensor for tensor in inputs if tensor.is_meta]
        if name in READS and metas:
            self.recorder.note("a value is read, and is zero", where=True)
            return False if name in ("equal", "is_nonzero") else torch.zeros((), dtype=metas[0].dtype, device="cpu").item()
        if not metas:
            kwargs.pop("pin_memory", None)
            result = function(*args, **kwargs)
            made = [tensor for tensor in costs.tensors_of(result) if tensor.is_meta]
            if made:
                self._made(function, name, {}, made, self.wanted or GPU, {HOST})
            return result
        return self._run(function, name, args, kwargs, inputs)

    def _run(self, function, name, args, kwargs, inputs):
        places = {self.storages.place(tensor) for tensor in inputs}
        on_gpu = GPU in places
        named = costs.named_arguments(function, args, kwargs)
        written = [tensor for key in costs.written_arguments(function) for tensor in costs.tensors_of(named.get(key))]
        if any(not tensor.is_meta for tensor in written):
            return self._into_host(name, named, written)
        args, kwargs = tree_map(self._as_meta, args), tree_map(self._as_meta, kwargs)
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type != "meta":
            kwargs["device"] = torch.device("meta")
        kwargs.pop("pin_memory", None)
        result = self._result(function, name, args, kwargs, named)
        known = {self.storages.of(tensor) for tensor in inputs if tensor.is_meta}
        outputs = costs.tensors_of(result)
        made = [tensor for tensor in outputs if self.storages.of(tensor) not in known or self.storages.of(tensor) is None]
        if not made and not written:
            return result
        place = self.wanted or (GPU if on_gpu else next(iter(places)) if len(places) == 1 else HOST)
        self._made(function, name, named, made, place, places)
        return result

    def _made(self, function, name, named, made, place, places):
        """Registers what an operator made, and records its kernel or copy."""
        self.storages.collect()
        for tensor in made:
            self.storages.add(tensor, place)
        crosses = name in ("_to_copy", "copy_") and len(places | {place}) == 2 and {GPU, HOST} == places | {place}
        if crosses:
            to_gpu = place == GPU if name == "_to_copy" else self.storages.place(named["self"]) == GPU
            size = sum(map(costs.size_of, made or [named["self"]]))
            if size:
                self.recorder.add({"copy": "host_to_device" if to_gpu else "device_to_host", "bytes": size})
        elif place == GPU or GPU in places:
            self._kernel(function, name, named, made)

    def _kernel(self, function, name, named, made):
        if name in costs.FREE:
            return
        line = {"kernel": name}
        product = costs.gemm(name, list(named.values()), made)
        if product is not None:
            line["gemm"], dtype = product
            if dtype == torch.float16:
                self.recorder.note("matrix products of float16 count as bf16, whose rates they have")
            line["dtype"] = costs.dtype_of(dtype)
        else:
            line["bytes"] = costs.moved_bytes(function, name, named, made)
            if not line["bytes"]:
                return
        part = self.recorder.part
        if part == "backward" and torch.is_grad_enabled():
            part = "recompute"
        self.recorder.add({**line, "part": part})

    def _as_meta(self, value):
        if isinstance(value, torch.Tensor) and not value.is_meta:
            result = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            self.storages.add(result, HOST)
            return result
        return value

    def _into_host(self, name, named, written):
        """A real tensor of the host takes what nobody knows: zeros."""
        source = [tensor for key, value in named.items() for tensor in costs.tensors_of(value) if tensor.is_meta]
        if name == "copy_" and self.storages.place(source[0]) == GPU:
            self.recorder.add({"copy": "device_to_host", "bytes": max(1, costs.size_of(source[0]))})
        self.recorder.note("a tensor of the host takes values that are not known, and is zero", where=True)
        for tensor in written:
            tensor.zero_()
        return written[0]

    def _result(self, function, name, args, kwargs, named):
        """Runs an operator on meta tensors, or says what it makes where ATen has no meta kernel for it."""
        if name.startswith("_foreach_"):
            return foreach(name, args)
        if name == "masked_select":
            self.recorder.note("elements are chosen by values that are not known: all of them", where=True)
            return args[0].new_empty(torch.broadcast_shapes(args[0].shape, args[1].shape).numel())
        if name in OWN:
            return OWN[name](*args, **kwargs)
        if name == "index":
            args = (args[0], self._all_chosen(args[1]))
        try:
            return function(*args, **kwargs)
        except NotImplementedError as error:
            written = [named[key] for key in costs.written_arguments(function) if key in named]
            if written and len(function._schema.returns) <= 1:
                return written[0] if function._schema.returns else None
            from torch._decomp import decomposition_table

            if function in decomposition_table:
                return decomposition_table[function](*args, **kwargs)
            result = of_zeros(function, args, kwargs)
            if result is None:
                raise Unsupported(f"operator {function._schema.name} on the GPU: torch {torch.__version__} has no meta kernel for it"
                                  ) from error
            return result

    def _all_chosen(self, indices):
        """Masks among indices, as numbers of all of their elements."""
        result = []
        for index in indices:
            if index is None or index.dtype not in (torch.bool, torch.uint8):
                result.append(index)
            else:
                self.recorder.note("elements are chosen by values that are not known: all of them", where=True)
                result += [index.new_empty(index.numel(), dtype=torch.int64) for _ in range(index.dim())]
        return result


MOST_ELEMENTS = 1 << 28  # of the tensors of an operator that is run on the host


def of_zeros(function, args, kwargs):
    """What an operator without a meta kernel makes: it runs on zeros of the host, whose results have the shapes. None if it cannot."""
    if getattr(torch.Tag, "dynamic_output_shape", None) in getattr(function, "tags", ()) or function._schema.name in BY_VALUES:
        return None
    if sum(tensor.numel() for tensor in costs.tensors_of([*args, *kwargs.values()])) > MOST_ELEMENTS:
        return None

    def zeros(value):
        if isinstance(value, torch.Tensor):
            return torch.zeros((), dtype=value.dtype).expand(value.shape).contiguous() if value.is_meta else value
        return torch.device("cpu") if isinstance(value, torch.device) else value

    try:
        result = function(*tree_map(zeros, args), **tree_map(zeros, kwargs))
    except (NotImplementedError, RuntimeError):
        return None
    return tree_map(lambda value: torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
                    if isinstance(value, torch.Tensor) else value, result)


# Operators whose outputs have shapes that follow from values.
BY_VALUES = {"aten::" + name for name in ("nonzero", "unique_dim", "_unique", "_unique2", "unique_consecutive", "unique_dim_consecutive", "bincount",
                                          "repeat_interleave", "masked_select", "_ctc_loss")}


def foreach(name, args):
    """Multi-tensor operators, which have no meta kernels: in place, norms, or like the first list."""
    if name.endswith("_"):
        return None
    if "norm" in name:
        return [tensor.new_empty(()) for tensor in args[0]]
    return [torch.empty_like(tensor) for tensor in args[0]]


def native_dropout(tensor, p, train):
    return torch.empty_like(tensor), torch.empty_like(tensor, dtype=torch.bool)


def native_batch_norm(tensor, weight, bias, mean, variance, training, momentum, eps):
    saved = tensor.new_empty(tensor.shape[1] if training else 0, dtype=torch.float32)
    return torch.empty_like(tensor), saved, torch.empty_like(saved)


def native_batch_norm_backward(gradient, tensor, weight, mean, variance, saved, inverse, train, eps, wanted):
    scale = tensor.new_empty(tensor.shape[1]) if weight is None else torch.empty_like(weight)
    return tuple(torch.empty_like(like) if want else None for like, want in zip((tensor, scale, scale), wanted))


def convolution_backward(gradient, image, weight, bias_sizes, *rest):
    wanted = rest[-1]
    bias = gradient.new_empty(gradient.shape[1]) if wanted[2] else None
    return torch.empty_like(image) if wanted[0] else None, torch.empty_like(weight) if wanted[1] else None, bias


def native_layer_norm(tensor, shape, weight, bias, eps):
    outer = tuple(tensor.shape[:tensor.dim() - len(shape)]) + (1,) * len(shape)
    wide = torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.dtype
    return torch.empty_like(tensor), tensor.new_empty(outer, dtype=wide), tensor.new_empty(outer, dtype=wide)


def statistics(tensor):
    """A mean and an inverse deviation of each channel, as wide as sums are on a GPU."""
    wide = torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.dtype
    return tensor.new_empty(tensor.shape[1], dtype=wide), tensor.new_empty(tensor.shape[1], dtype=wide)


def batch_norm_backward_reduce(gradient, tensor, mean, deviation, weight, of_input, of_weight, of_bias):
    return (*(torch.empty_like(mean) if of_input else None for _ in range(2)),
            torch.empty_like(weight) if of_weight else None, torch.empty_like(weight) if of_bias else None)


OWN = {"batch_norm_stats": lambda tensor, eps: statistics(tensor), "batch_norm_elemt": lambda tensor, *ignored: torch.empty_like(tensor),
       "batch_norm_gather_stats_with_counts": lambda tensor, *ignored: statistics(tensor),
       "batch_norm_backward_reduce": batch_norm_backward_reduce,
       "batch_norm_backward_elemt": lambda gradient, tensor, *ignored: torch.empty_like(tensor),
       "native_dropout": native_dropout, "native_dropout_backward": lambda gradient, mask, scale: torch.empty_like(gradient),
       "native_batch_norm": native_batch_norm, "native_batch_norm_backward": native_batch_norm_backward,
       "native_layer_norm": native_layer_norm, "convolution_backward": convolution_backward,
       "_amp_foreach_non_finite_check_and_unscale_": lambda *ignored: None,
       "_amp_update_scale_": lambda scale, *ignored: scale}
