"""What scripts call of tensors: devices are answered, tensors move between host and GPU, values read are zeros, autocast casts."""

import torch
from torch.overrides import TorchFunctionMode

from .recorder import Unsupported
from .storages import GPU, HOST, META, StorageView, has_data, raw

FACTORIES = {"empty", "zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "logspace", "eye", "empty_strided",
             "tensor", "as_tensor", "tril_indices", "triu_indices", "hann_window", "normal"}
FROM_DATA = {"tensor", "as_tensor", "randperm", "tril_indices", "triu_indices", "normal", "hann_window"}
LARGE = 1 << 16  # elements above which a tensor of the host has no data
VALUES = {"item": 0, "__bool__": False, "__float__": 0.0, "__int__": 0, "__index__": 0}
# Of torch/autocast_mode.cpp: what runs in the lower precision, and what in float32.
LOWER = {"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "__matmul__",
         "__rmatmul__", "prelu", "chain_matmul", "conv_transpose1d", "conv_transpose3d", "scaled_dot_product_attention"}
SINGLE = {"softmax", "log_softmax", "layer_norm", "group_norm", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "mse_loss", "l1_loss", "norm", "exp",
          "log", "pow", "__pow__", "sum", "prod", "cumsum", "cumprod", "smooth_l1_loss", "kl_div", "rsqrt", "softplus", "cosine_similarity",
          "binary_cross_entropy_with_logits", "expm1", "log10", "log1p", "log2", "reciprocal", "renorm", "dist", "cdist", "gelu_"}


def type_of(device):
    """`cuda` of a device as scripts name it: an index, a word, a torch.device."""
    if isinstance(device, int):
        return GPU
    kind = device.type if isinstance(device, torch.device) else str(device).split(":")[0]
    return {"cuda": GPU, "cpu": HOST, "meta": META}[kind] if kind in ("cuda", "cpu", "meta") else kind


class Functions(TorchFunctionMode):
    """Answers for tensors. Operators below it are recorded by `operators`."""

    def __init__(self, operators, index):
        super().__init__()
        self._operators, self._storages, self._recorder = operators, operators.storages, operators.recorder
        self._device = torch.device(GPU, index)
        self._casts = {}

    def device(self, tensor):
        place = self._storages.place(tensor)
        return self._device if place == GPU else torch.device(place)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name == "storage" and hasattr(args[0], "_storage"):
            return args[0]._storage()  # torch 1 asks for its C function by the name of Python's, which is in show_storages
        if raw.depth:
            return function(*args, **kwargs)
        if name == "__get__":
            return self._property(function, args)
        own = getattr(self, f"_on_{name}", None)
        if own is not None and args and isinstance(args[0], torch.Tensor):
            return own(function, *args, **kwargs)
        if name in VALUES and args[0].is_meta:
            return self._value(VALUES[name], args[0])
        if name in FACTORIES and not (args and isinstance(args[0], torch.Tensor) and name != "as_tensor"):
            return self._make(function, name, args, dict(kwargs))
        if kwargs.get("device") is not None:
            place = type_of(kwargs["device"])
            if place == HOST and not any(isinstance(one, torch.Tensor) and one.is_meta for one in args):
                return function(*args, **kwargs)
            return self._at(place, function, args, {**kwargs, "device": "meta"})
        if torch.is_autocast_enabled() and (name in LOWER or name in SINGLE):
            args, kwargs = self._autocast(name, args, kwargs)
        if name == "dropout" and args[0].is_meta and self._storages.place(args[0]) == GPU:
            return self._dropout(*args, **kwargs)
        return function(*args, **kwargs)

    def _property(self, function, args):
        name, tensor = function.__self__.__name__, args[0]
        if name == "device":
            return self.device(tensor)
        if name == "is_cuda":
            return self._storages.place(tensor) == GPU
        if name in ("is_meta", "is_cpu"):
            return self._storages.place(tensor) == (META if name == "is_meta" else HOST)
        return function(*args)

    def _value(self, value, tensor):
        if self._storages.place(tensor) != META:
            self._recorder.note("a value is read, and is zero", where=True)
        if value == 0 and value is not False and tensor.is_floating_point():
            return 0.0
        return value

    def _at(self, place, function, args, kwargs):
        before, self._operators.wanted = self._operators.wanted, place
        try:
            with raw:
                return function(*args, **kwargs)
        finally:
            self._operators.wanted = before

    def _make(self, function, name, args, kwargs):
        """A factory: real on the host if small or with values of its own, without data otherwise."""
        device = kwargs.pop("device", None)
        place = HOST if device is None else type_of(device)  # a device may be 0
        kwargs.pop("pin_memory", None)
        if name in FROM_DATA:
            if isinstance(args[0] if args else None, torch.Tensor):
                return self.move(args[0], place, kwargs.get("dtype")) if name == "as_tensor" else function(*args, **kwargs)
            gradient = kwargs.pop("requires_grad", False)
            result = function(*args, **kwargs)
            return (result if place == HOST else self.move(result, place)).requires_grad_(gradient)
        if place == HOST:
            shape = args[0] if args and isinstance(args[0], (tuple, list, torch.Size)) else args
            shape = kwargs.get("size", shape)
            count = 1
            for extent in shape if name in ("empty", "zeros", "ones", "rand", "randn", "full") else ():
                count *= int(extent)
            if count < LARGE:
                return function(*args, **kwargs)
        generator = kwargs.pop("generator", None)
        del generator  # no values are drawn
        return self._at(place, function, args, {**kwargs, "device": "meta"})

    def move(self, tensor, place, dtype=None, copy=False):
        """The tensor on the device `place`, itself if it is there and has the dtype."""
        if self._storages.place(tensor) == place and not copy:
            return tensor if dtype is None or dtype == tensor.dtype else tensor.to(dtype)
        if place == HOST and not tensor.is_meta:
            return tensor.to(dtype or tensor.dtype, copy=copy)
        return self._at(place, torch.Tensor.to, (tensor,), {"device": "meta", "dtype": dtype or tensor.dtype, "copy": True})

    def shaped(self, shape, stride, dtype, device):
        """A tensor of that shape on a device, without data."""
        return self._at(type_of(device), torch.empty_strided, (shape, stride), {"dtype": dtype, "device": "meta"})

    def on_host(self, tensor):
        """A tensor of the host like it, without data."""
        return self.shaped(tensor.shape, tensor.stride(), tensor.dtype, HOST)

    def _on_to(self, function, tensor, *args, **kwargs):
        device, dtype, copy = kwargs.get("device"), kwargs.get("dtype"), kwargs.get("copy", False)
        for one in (*args, kwargs.get("other")):
            if isinstance(one, torch.Tensor):
                device, dtype = self.device(one), one.dtype
            elif isinstance(one, torch.dtype):
                dtype = one
            elif isinstance(one, (str, torch.device)) or (isinstance(one, int) and not isinstance(one, bool)):
                device = one
        return self.move(tensor, self._storages.place(tensor) if device is None else type_of(device), dtype, copy)

    def _on_cuda(self, function, tensor, *ignored, **also_ignored):
        return self.move(tensor, GPU)

    def _on_cpu(self, function, tensor, *ignored, **also_ignored):
        return self.move(tensor, HOST)

    def _on_pin_memory(self, function, tensor, *ignored):
        return tensor

    def _on_is_pinned(self, function, tensor, *ignored):
        return False

    def _on_get_device(self, function, tensor):
        return self._device.index if self._storages.place(tensor) == GPU else -1

    def _on_untyped_storage(self, function, tensor):
        return StorageView(self._storages, tensor, 1) if self._storages.place(tensor) == GPU else function(tensor)

    def _on_data_ptr(self, function, tensor):
        if self._storages.place(tensor) != GPU:
            return function(tensor)
        base = StorageView(self._storages, tensor, 1).data_ptr()
        return base + tensor.storage_offset() * tensor.element_size() if base else 0

    def _on_type(self, function, tensor, dtype=None, non_blocking=False, **ignored):
        """The name of the type, or the tensor of another one: `torch.cuda.HalfTensor` is on the GPU."""
        if not tensor.is_meta:
            return function(tensor, *(() if dtype is None else (dtype,)))
        if dtype is None:
            kind = torch.empty(0, dtype=tensor.dtype).type()
            return kind.replace("torch.", "torch.cuda.", 1) if self._storages.place(tensor) == GPU else kind
        if isinstance(dtype, torch.dtype):
            return tensor.to(dtype)
        name = dtype if isinstance(dtype, str) else torch.typename(dtype)
        real = torch.empty(0).type(name.replace("torch.cuda.", "torch.")).dtype
        return self.move(tensor, GPU if "cuda" in name else HOST, real)

    def _on_one_hot(self, function, tensor, num_classes=-1):
        if not tensor.is_meta:
            return function(tensor, num_classes)
        if num_classes < 0:
            raise Unsupported("one_hot without num_classes: their number depends on values")
        result = self._at(self._storages.place(tensor), torch.zeros, ((*tensor.shape, num_classes),), {"dtype": torch.int64, "device": "meta"})
        return result.scatter_(-1, tensor.unsqueeze(-1), 1)

    def _on_share_memory_(self, function, tensor):
        return tensor

    def _on_tolist(self, function, tensor):
        return torch.zeros(tensor.shape, dtype=tensor.dtype).tolist() if self._is_unknown(tensor) else function(tensor)

    def _on_numpy(self, function, tensor, *args, **kwargs):
        return torch.zeros(tensor.shape, dtype=tensor.dtype).numpy() if self._is_unknown(tensor) else function(tensor, *args, **kwargs)

    def _is_unknown(self, tensor):
        if tensor.is_meta:
            self._recorder.note("values are read, and are zeros", where=True)
        return tensor.is_meta

    def _dropout(self, tensor, p=0.5, training=True, train=None):
        """One kernel with a mask of bytes, as on a GPU; on meta tensors ATen has three."""
        if not (training if train is None else train) or p == 0:
            return tensor
        return torch.native_dropout(tensor, p, True)[0]

    def _autocast(self, name, args, kwargs):
        target = torch.get_autocast_gpu_dtype() if name in LOWER else torch.float32

        def cast(value):
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                return type(value)(cast(one) for one in value)
            if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.dtype in (target, torch.float64):
                return value
            if self._storages.place(value) != GPU:
                return value
            if name in LOWER and value.is_leaf and value.requires_grad:
                if id(value) not in self._casts:
                    self._casts[id(value)] = (value, value.to(target))
                return self._casts[id(value)][1]
            return value.to(target)

        return cast(tuple(args)), {key: cast(value) for key, value in kwargs.items()}

    def forget_casts(self):
        """Autocast forgets the parameters that it cast when it ends."""
        self._casts.clear()


def let_python_through():
    """Python's own functions of tensors call others, and these are what is answered for: not the function as a whole."""
    import torch._tensor
    import torch.functional
    import torch.nn.functional

    for module in (torch.nn.functional, torch.functional, torch._tensor, torch.nn.init):
        for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
            if hasattr(module, name):
                setattr(module, name, lambda *ignored: False)


def show_storages(storages, recorder):
    """Tensor.storage() and what it is called within torch 2, which are Python's, and what would ask for a real stream."""
    torch.Tensor.record_stream = lambda tensor, stream: recorder.note(
        "record_stream holds no memory: that of a tensor is free once nothing refers to it")

    copy = torch.Tensor.__deepcopy__

    def deepcopy(tensor, memo):
        """A copy on the device where it is; PyTorch's own copies the storage."""
        if has_data(tensor) or not tensor.is_leaf:
            return copy(tensor, memo)
        if id(tensor) not in memo:
            with torch.no_grad():
                memo[id(tensor)] = tensor.clone().requires_grad_(tensor.requires_grad)
        return memo[id(tensor)]

    torch.Tensor.__deepcopy__ = deepcopy

    def shown(own):
        def storage(tensor):
            return StorageView(storages, tensor, tensor.element_size()) if storages.place(tensor) == GPU else own(tensor)
        return storage

    for name in ("storage", "_typed_storage"):
        if hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, shown(getattr(torch.Tensor, name)))


def show_zeros(recorder):
    """Tensors without data are shown as zeros."""
    show, shape_of = torch.Tensor.__repr__, torch.Tensor.__format__

    def repr_of(tensor, **more):
        if has_data(tensor):
            return show(tensor, **more)
        recorder.note("values are shown, and are zeros", where=True)
        return f"tensor(zeros, size={tuple(tensor.shape)}, dtype={tensor.dtype})"

    def format_of(tensor, spec):
        if tensor.dim() == 0 and isinstance(tensor, torch.Tensor) and not type(tensor) is torch.nn.Parameter:
            return format(tensor.item(), spec)
        return shape_of(tensor, spec)

    torch.Tensor.__repr__, torch.Tensor.__format__ = repr_of, format_of
