"""Where tensors are said to be, and how long their memory lives.

Tensors of the GPU are tensors of PyTorch's `meta` device, which have shapes and no data. So are large ones and parameters of the host;
all others of the host are real. What a tensor is said to be on belongs to its storage, which weak references watch.
"""

import torch

GPU, HOST, META = "cuda", "cpu", "meta"
BLOCK_BYTES = 512  # kMinBlockSize of c10/cuda/CUDACachingAllocator.cpp: what an allocation is rounded up to


class Storage:
    """One storage: what device it is said to be on, and its bytes, which FSDP changes."""

    __slots__ = ("place", "bytes", "held", "number")

    def __init__(self, place, size, number):
        self.place, self.bytes, self.held, self.number = place, size, 0, number


class Raw:
    """While it is entered, tensors are asked for what they are, not for what they are said to be."""

    def __init__(self):
        self.depth = 0

    def __enter__(self):
        self.depth += 1

    def __exit__(self, *ignored):
        self.depth -= 1


raw = Raw()  # of the one script that a process runs


def has_data(tensor):
    with raw:
        return not tensor.is_meta


def untyped(tensor):
    """The storage of a tensor itself. It is `_storage` in torch 1, `untyped_storage` in torch 2."""
    with raw:
        return tensor.untyped_storage() if hasattr(torch.Tensor, "untyped_storage") else tensor._storage()


class Storages:
    """All storages of meta tensors that live, each with the GPU memory that it holds."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._storages = {}  # by address of the C++ object
        self._class = torch.UntypedStorage
        self._expired = self._class._expired
        self._order = []  # addresses, which the weak references keep from being used again
        self._count = 0

    def place(self, tensor):
        """What device a tensor is said to be on."""
        if not has_data(tensor):
            found = self._storages.get(untyped(tensor)._cdata)
            return found.place if found is not None else META
        return HOST

    def of(self, tensor):
        return self._storages.get(untyped(tensor)._cdata)

    def add(self, tensor, place):
        """Registers a new storage; one that is known stays what it is."""
        storage = untyped(tensor)
        found = self._storages.get(storage._cdata)
        if found is None:
            self._count += 1
            found = self._storages[storage._cdata] = Storage(place, storage.nbytes(), self._count)
            self._order.append(storage._weak_ref())
            if place == GPU:
                self.hold(found, found.bytes)
        return found

    def hold(self, storage, size):
        """The storage has `size` bytes from now on."""
        storage.bytes = size
        rounded = -(-size // BLOCK_BYTES) * BLOCK_BYTES if storage.place == GPU else 0
        if rounded > storage.held:
            self._recorder.allocate(rounded - storage.held)
        elif rounded < storage.held:
            self._recorder.free(storage.held - rounded)
        storage.held = rounded

    def collect(self):
        """Frees the memory of storages that nothing holds any more."""
        gone = list(map(self._expired, self._order))
        if not any(gone):
            return
        kept = []
        for address, is_gone in zip(self._order, gone):
            if not is_gone:
                kept.append(address)
                continue
            self._recorder.free(self._storages.pop(address).held)
            self._class._free_weak_ref(address)
        self._order = kept


class StorageView:
    """Stands for `Tensor.storage()` of a meta tensor, whose own cannot be resized."""

    def __init__(self, storages, tensor, item_bytes):
        self._storages, self._storage, self._item = storages, storages.of(tensor), item_bytes
        self.device = torch.device(self._storage.place)

    def nbytes(self):
        return self._storage.bytes

    def size(self):
        return self._storage.bytes // self._item

    def resize_(self, size):
        self._storages.hold(self._storage, size * self._item)
        return self

    def data_ptr(self):
        """No address of memory: equal for tensors that share it, and 0 where there is none."""
        return self._storage.number << 32 if self._storage.bytes else 0

    def untyped(self):
        return self

    def element_size(self):
        return self._item

    __len__ = _size = size
    _resize_, _data_ptr, _nbytes = resize_, data_ptr, nbytes
