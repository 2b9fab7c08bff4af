"""Where tensors are said to be, and how long their memory lives.

Tensors of the GPU are tensors of PyTorch's `meta` device, which have shapes and no data. So are large ones and parameters of the host;
all others of the host are real. What a tensor is said to be on belongs to its storage, which weak references watch.
"""

import itertools
import operator

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
        self._settled = []  # those of parameters and optimizer states, which are looked at more rarely
        self._looks = 0
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
        self._looks += 1
        self._order = self._kept(self._order)
        if self._looks % 256 == 0:
            self._settled = self._kept(self._settled)

    def _kept(self, addresses):
        gone = list(map(self._expired, addresses))
        if not any(gone):
            return addresses
        for address in itertools.compress(addresses, gone):
            self._recorder.free(self._storages.pop(address).held)
            self._class._free_weak_ref(address)
        return list(itertools.compress(addresses, map(operator.not_, gone)))

    def settle(self, tensors):
        """Says that these live as long as the training, so that a look at all others is short."""
        known = set(self._settled)
        chosen = {untyped(tensor)._cdata for tensor in tensors if not has_data(tensor)} - known
        if chosen:
            self._settled += [address for address in self._order if address in chosen]
            self._order = [address for address in self._order if address not in chosen]


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
