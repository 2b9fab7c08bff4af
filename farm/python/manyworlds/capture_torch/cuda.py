"""torch.cuda without a GPU: devices, memory, streams and events are answered; what is not is refused by name."""

import contextlib
import types

import torch

from .recorder import COMPUTE, Unsupported


class Stream:
    """A stream of the script. The first is `compute`, on which all runs that the script puts on no other."""

    def __init__(self, device=None, priority=0, name=None, **ignored):
        self.device, self.priority, self.device_index = torch.device("cuda", Cuda.current.index), priority, Cuda.current.index
        self.name = name or f"stream {len(Cuda.current.streams)}"
        Cuda.current.streams.append(self)
        self.cuda_stream = self.stream_id = len(Cuda.current.streams) - 1

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def wait_event(self, event):
        event.wait(self)

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self):
        Cuda.current.synchronize()

    def query(self):
        return True

    def __enter__(self):
        self._before = Cuda.current.enter(self)
        return self

    def __exit__(self, *ignored):
        Cuda.current.enter(self._before)


class Event:
    """An event of the script. Times between events are not known, and are zero."""

    def __init__(self, enable_timing=False, **ignored):
        self.number = None

    def record(self, stream=None):
        self.number = Cuda.current.recorder.record_event((stream or Cuda.current.stream).name)

    def wait(self, stream=None):
        if self.number is not None:
            Cuda.current.recorder.wait_event(self.number, (stream or Cuda.current.stream).name)

    def query(self):
        return True

    def synchronize(self):
        Cuda.current.synchronize()

    def elapsed_time(self, other):
        Cuda.current.recorder.note("a time between events is read, and is zero", where=True)
        return 0.0


class Cuda:
    """What torch.cuda is while a script runs."""

    current = None

    def __init__(self, recorder, storages, index, devices, name, memory_bytes):
        self.recorder, self.storages, self.index = recorder, storages, index
        self.devices, self.name, self.memory_bytes = devices, name, memory_bytes
        self.streams = []
        Cuda.current = self
        self.stream = Stream(name=COMPUTE)

    def enter(self, stream):
        before = self.stream
        if stream is not None:
            self.stream = stream
            self.recorder.stream = stream.name
        return before

    def synchronize(self, *ignored, **also_ignored):
        self.recorder.note("the host does not wait for the GPU where it synchronises: hosts have no time", where=True)

    def live(self, *ignored):
        self.storages.collect()
        return self.recorder.live_bytes

    def peak(self, *ignored):
        self.storages.collect()
        return self.recorder.peak_bytes

    def reset_peak(self, *ignored):
        self.storages.collect()
        self.recorder.peak_bytes = self.recorder.live_bytes

    def properties(self, *ignored):
        return types.SimpleNamespace(name=self.name, total_memory=self.memory_bytes, major=9, minor=0, multi_processor_count=132,
                                     is_integrated=False, is_multi_gpu_board=False)

    @contextlib.contextmanager
    def in_stream(self, stream):
        before = self.enter(stream)
        try:
            yield
        finally:
            self.enter(before)

    def set_device(self, device):
        index = device if isinstance(device, int) else torch.device(device).index
        if index not in (None, self.index):
            raise Unsupported(f"torch.cuda.set_device({device!r}): a process has one GPU, {self.index}, that of LOCAL_RANK")

    def memory_stats(self, *ignored):
        return {"allocated_bytes.all.current": self.live(), "allocated_bytes.all.peak": self.peak(),
                "reserved_bytes.all.current": self.live(), "reserved_bytes.all.peak": self.peak(), "num_alloc_retries": 0, "num_ooms": 0}

    def install(self):
        """Puts all of this in the place of torch.cuda's functions."""
        def same(*ignored, **also_ignored):
            return None

        answers = {
            "is_available": lambda: True, "device_count": lambda: self.devices, "current_device": lambda: self.index,
            "is_initialized": lambda: True, "init": same, "set_device": self.set_device, "synchronize": self.synchronize,
            "get_device_name": lambda *ignored: self.name, "get_device_properties": self.properties,
            "get_device_capability": lambda *ignored: (9, 0), "is_bf16_supported": lambda *ignored: True,
            "memory_allocated": self.live, "max_memory_allocated": self.peak, "memory_reserved": self.live,
            "max_memory_reserved": self.peak, "memory_stats": self.memory_stats, "empty_cache": same, "ipc_collect": same,
            "reset_peak_memory_stats": self.reset_peak, "reset_max_memory_allocated": self.reset_peak,
            "mem_get_info": lambda *ignored: (self.memory_bytes - self.live(), self.memory_bytes),
            "memory_summary": lambda *ignored, **more: f"{self.live()} bytes are allocated, {self.peak()} were at most",
            "manual_seed": same, "manual_seed_all": same, "seed": same, "seed_all": same,
            "get_rng_state": lambda *ignored: torch.zeros(16, dtype=torch.uint8), "set_rng_state": same,
            "current_stream": lambda *ignored: self.stream, "default_stream": lambda *ignored: self.streams[0],
            "stream": self.in_stream, "set_stream": self.enter, "Stream": Stream, "Event": Event,
            "device": lambda *ignored: contextlib.nullcontext(), "is_current_stream_capturing": lambda: False,
            "_lazy_init": self._refuse, "_sleep": same,
        }
        for name, answer in answers.items():
            setattr(torch.cuda, name, answer)
        torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = torch.cuda.nvtx.mark = same
        torch.cuda.nvtx.range = lambda *ignored, **also_ignored: contextlib.nullcontext()
        for module, names in ((torch.cuda.random, ("manual_seed", "manual_seed_all", "get_rng_state", "set_rng_state")),
                              (torch.cuda.memory, ("memory_allocated", "max_memory_allocated", "memory_stats", "empty_cache"))):
            for name in names:
                setattr(module, name, answers[name])
        import torch.utils.data._utils.pin_memory as pinning

        pinning.pin_memory = lambda data, *ignored: data

    @staticmethod
    def _refuse():
        import sys

        name = sys._getframe(1).f_code.co_name
        raise Unsupported(f"torch.cuda's {name}() is not answered in a capture")
