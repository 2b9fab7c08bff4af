"""What ranks of a job say to each other besides the network: processes that a script starts, files that it saves, objects that it sends.

A rank that is captured reads what a rank before it saved or sent, from a folder that all of them share; that one was started earlier, so
that waiting for it ends.
"""

import hashlib
import io
import os
import pickle
import sys
import time

import torch

from .command import ENDED
from .recorder import Unsupported
from .storages import GPU, HOST, has_data


MAGIC = b"manyworlds: shapes of what would be saved\n"  # begins what is saved to an open file
STORAGES = tuple(getattr(torch, name) for name in ("TypedStorage", "UntypedStorage") if hasattr(torch, name))


class Tensors(pickle.Pickler):
    """Pickles tensors without data as their shapes."""

    def __init__(self, file, functions):
        super().__init__(file)
        self._functions = functions

    def persistent_id(self, value):
        if isinstance(value, torch.Tensor) and not has_data(value):
            return (tuple(value.shape), tuple(value.stride()), value.dtype, value.requires_grad,
                    self._functions.device(value).type, isinstance(value, torch.nn.Parameter))
        return None


class Shapes(pickle.Unpickler):
    """Makes tensors of such shapes again, on the device that `place` says of the one where they were."""

    def __init__(self, file, functions, place):
        super().__init__(file)
        self._functions, self._place = functions, place

    def persistent_load(self, described):
        shape, stride, dtype, requires_grad, was_on, is_parameter = described
        result = self._functions.shaped(shape, stride, dtype, self._place(was_on))
        if is_parameter:
            return torch.nn.Parameter(result, requires_grad)
        return result.requires_grad_(requires_grad)


class Told:
    """A folder with what ranks told each other, by name."""

    def __init__(self, folder, rank, captured, functions):
        self._folder, self._rank, self._captured, self._functions = folder, rank, captured, functions
        os.makedirs(folder, exist_ok=True)

    def _path(self, rank, name):
        return os.path.join(self._folder, f"{rank}-{hashlib.sha256(name.encode()).hexdigest()}")

    def tell(self, name, value):
        buffer = io.BytesIO()
        Tensors(buffer, self._functions).dump(value)
        path = self._path(self._rank, name)
        with open(path + ".part", "wb") as file:
            file.write(buffer.getvalue())
        os.replace(path + ".part", path)

    def own(self, name, place):
        """What this rank told last by that name, or None in a list of nothing."""
        return self._read(self._rank, name, place)

    def _read(self, rank, name, place):
        try:
            with open(self._path(rank, name), "rb") as file:
                return [Shapes(file, self._functions, place).load()]
        except FileNotFoundError:
            return []

    def of_others(self, name, place, ranks):
        """What the first of these ranks told by that name; [] if none of those that are captured and come before this one did."""
        waited = [rank for rank in ranks if rank in self._captured and rank < self._rank]
        while True:
            ended = [os.path.exists(os.path.join(self._folder, f"{ENDED}-{rank}")) for rank in waited]
            for rank in waited:
                found = self._read(rank, name, place)
                if found:
                    return found
            if all(ended):
                return []
            time.sleep(0.02)


def one_of(started, settings):
    """Says which of the processes that a script starts this rank is: that of its place on the node."""
    if started != settings["per_node"]:
        raise Unsupported(f"the script starts {started} processes, and a node has {settings['per_node']} ranks: "
                          f"capture it with --per-node {started}, and with --world {started} if the job has one node")
    return settings["local_rank"]


def asked_by_torch():
    """Whether the caller of the caller is PyTorch, as where a DataLoader starts its workers."""
    return sys._getframe(2).f_globals.get("__name__", "").startswith("torch.")


def start_in_place(recorder, settings):
    """torch.multiprocessing's spawn and Process: a rank is captured in one process, which runs what it would have started for the rank."""
    import torch.multiprocessing as multiprocessing
    import torch.multiprocessing.spawn as spawning

    class Context:
        processes = []

        def join(self, timeout=None):
            return True

        pids = staticmethod(list)

    def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
        number = one_of(nprocs, settings)
        recorder.note(f"of the {nprocs} processes that the script starts, a rank runs that of its place on the node")
        fn(number, *args)
        return None if join else Context()

    real = multiprocessing.Process

    class Process:
        """Of all that a script makes, the one with the rank's number runs, where it is started. Those of PyTorch's own are real."""

        made = 0
        pid, exitcode, sentinel, authkey = 0, 0, 0, b""

        def __new__(cls, *args, **kwargs):
            return real(*args, **kwargs) if asked_by_torch() else super().__new__(cls)

        def __init__(self, group=None, target=None, name=None, args=(), kwargs=None, *, daemon=None):
            self._number, self.name, self.daemon = Process.made, name or f"Process-{Process.made + 1}", daemon
            self._call = (target, args, kwargs or {})
            Process.made += 1

        def run(self):
            target, args, kwargs = self._call
            if target is not None:
                target(*args, **kwargs)

        def start(self):
            recorder.note("of the processes that the script starts, a rank runs that of its place on the node alone", where=True)
            if self._number == settings["local_rank"]:
                self.run()

        def join(self, timeout=None):
            return None

        def is_alive(self):
            return False

        terminate = kill = close = join

    multiprocessing.spawn = spawning.spawn = multiprocessing.start_processes = spawning.start_processes = spawn
    multiprocessing.Process = Process
    get_context = multiprocessing.get_context

    def with_process(method=None):
        context = get_context(method)
        if asked_by_torch():
            return context
        return type("Context", (), {"__getattr__": lambda self, name: getattr(context, name), "Process": Process})()

    multiprocessing.get_context = with_process


def keep_saved(told, recorder, functions):
    """torch.save keeps shapes, and torch.load gives them back; other files are read as they are, on the host."""
    read, write = torch.load, torch.save

    def name_of(file):
        return os.path.abspath(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else None

    def save(obj, f, *others, **more):
        if isinstance(obj, STORAGES):  # of a tensor that has data, by pickle
            return write(obj, f, *others, **more)
        recorder.note("nothing is saved", where=True)
        if name_of(f) is not None:
            return told.tell(name_of(f), obj)
        f.write(MAGIC)
        return Tensors(f, functions).dump(obj)

    def where(map_location):
        """Where a tensor that was on a device is to be, by torch.load's rules."""
        def place(was_on):
            if map_location is None:
                return was_on
            if isinstance(map_location, dict):
                return next((str(to) for of, to in map_location.items() if str(of).split(":")[0] == was_on), was_on)
            return HOST if callable(map_location) else str(torch.device(map_location))
        return place

    def load(f, map_location=None, *others, **more):
        name, place = name_of(f), where(map_location)
        if name is None:
            begin = f.tell()
            if f.read(len(MAGIC)) == MAGIC:
                return Shapes(f, functions, place).load()
            f.seek(begin)
        found = told.own(name, place) if name else []
        if not found and name and not os.path.exists(name):
            found = told.of_others(name, place, range(told._rank))
        if found:
            return found[0]
        if name and not os.path.exists(name):
            raise FileNotFoundError(f"[Errno 2] No such file or directory: '{f}' (in a capture, no captured rank before this one saved it)")
        return moved(read(f, "cpu", *others, **more), place(GPU if map_location is not None else HOST))

    def moved(value, place):
        if isinstance(value, torch.Tensor):
            return functions.move(value, GPU) if place.startswith(GPU) else value
        if isinstance(value, dict):
            for key, one in value.items():
                value[key] = moved(one, place)
            return value
        return type(value)(moved(one, place) for one in value) if type(value) in (list, tuple) else value

    torch.save, torch.load = save, load
