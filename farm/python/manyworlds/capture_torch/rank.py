"""Runs a script as one rank, and writes what it did: `python3 -m manyworlds.capture_torch.rank SETTINGS`, for the command alone."""

import contextlib
import json
import os
import runpy
import sys
import traceback

from .recorder import OURS, Recorder, Unsupported

EXCEPTION, UNSUPPORTED = 3, 2  # exit codes


def watch_optimizers(recorder):
    """Kernels of Optimizer.step are the optimizer's, and a step of training ends with it."""
    import functools

    import torch

    start = torch.optim.Optimizer.__init__

    def begin(optimizer, *args, **kwargs):
        start(optimizer, *args, **kwargs)
        kind = type(optimizer)
        if getattr(kind.step, "is_watched", False):
            return
        step = kind.step

        @functools.wraps(step)
        def watched(self, *more, **named):
            before, recorder.part = recorder.part, "optimizer"
            try:
                return step(self, *more, **named)
            finally:
                recorder.part = before
                recorder.storages.collect()
                recorder.storages.settle(tensors_held(self))
                if before != "optimizer":
                    recorder.optimizer_stepped(self)

        watched.is_watched = watched.hooked = True
        kind.step = watched

    torch.optim.Optimizer.__init__ = begin


def tensors_held(optimizer):
    """Parameters of an optimizer, and its states."""
    import torch

    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    held += [value for state in optimizer.state.values() if isinstance(state, dict) for value in state.values()]
    return [value for value in held if isinstance(value, torch.Tensor)]


def watch_backward(recorder):
    """What autograd's engine runs is the backward pass; with gradients enabled, in it, it is recomputed for it."""
    import torch

    engine = torch.autograd.Variable._execution_engine

    class Engine:
        def __getattr__(self, name):
            return getattr(engine, name)

        def run_backward(self, *args, **kwargs):
            before, recorder.part = recorder.part, "backward"
            try:
                return engine.run_backward(*args, **kwargs)
            finally:
                recorder.part = before

    torch.autograd.Variable._execution_engine = Engine()


def without_data(functions):
    """Parameters never have data, so that moving a module keeps them the same objects, ties included."""
    import torch

    from .storages import has_data

    make = torch.nn.Parameter.__new__

    def new(cls, data=None, requires_grad=True):
        if data is not None and has_data(data):
            with torch.no_grad():
                data = functions.on_host(data)
        return make(cls, data, requires_grad)

    torch.nn.Parameter.__new__ = staticmethod(new)


@contextlib.contextmanager
def captured(settings, recorder):
    """PyTorch as the script is to see it."""
    import torch

    from . import data_parallel, groups, mend, processes, refusals
    from .cuda import Cuda
    from .functions import Functions, let_python_through, show_storages, show_zeros
    from .operators import Operators
    from .storages import Storages

    mend.install(torch.__version__)
    storages = recorder.storages = Storages(recorder)
    operators = Operators(recorder, storages)
    functions = Functions(operators, settings["local_rank"])
    Cuda(recorder, storages, settings["local_rank"], settings["per_node"], settings["gpu"], settings["memory_bytes"]).install()
    let_python_through()
    show_zeros(recorder)
    show_storages(storages, recorder)

    without_data(functions)
    watch_optimizers(recorder)
    watch_backward(recorder)
    told = processes.Told(settings["told"], settings["rank"], settings["captured"], functions)
    processes.start_in_place(recorder, settings)
    processes.keep_saved(told, recorder, functions)
    refusals.install(recorder, settings)
    forget = torch.clear_autocast_cache
    torch.clear_autocast_cache = lambda: (functions.forget_casts(), forget())[1]
    traffic = groups.Traffic(recorder, storages, settings["rank"], settings["world"])
    groups.install(traffic, told)
    data_parallel.install()
    with functions, operators:
        yield traffic


def shown(error):
    """The traceback of a script's exception without the frames around it that are not the script's."""
    frames = traceback.TracebackException(*error, capture_locals=False)
    while frames.stack and (frames.stack[0].filename.startswith(OURS) or "runpy" in frames.stack[0].filename):
        del frames.stack[0]
    return "".join(frames.format())


def main(settings):
    recorder = Recorder()
    sys.modules["manyworlds.capture_torch"].recorder = recorder
    sys.argv = [settings["script"], *settings["arguments"]]
    sys.path.insert(0, os.path.dirname(os.path.abspath(settings["script"])))
    try:
        with captured(settings, recorder) as traffic:
            try:
                runpy.run_path(settings["script"], run_name="__main__")
            except SystemExit as exit:
                if exit.code not in (None, 0):
                    print(f"the script ended with exit code {exit.code}", file=sys.stderr)
                    return EXCEPTION
        lines = recorder.steps(settings["steps"])
    except Unsupported as error:
        at = "".join(shown(sys.exc_info()).splitlines(keepends=True)[:-1])
        print(f"{at}manyworlds: error: {error}", file=sys.stderr)
        return UNSUPPORTED
    except Exception:
        print(shown(sys.exc_info()), end="", file=sys.stderr)
        return EXCEPTION
    if not any("kernel" in line or "collective" in line for line in lines):
        print("manyworlds: error: the script ran nothing on a GPU: its tensors stayed on the host", file=sys.stderr)
        return UNSUPPORTED
    import torch

    with open(settings["output"], "w", encoding="utf-8") as file:
        json.dump({"rank": settings["rank"], "lines": lines, "groups": traffic.groups, "notes": list(recorder.notes),
                   "torch": torch.__version__}, file)
    return 0


if __name__ == "__main__":
    import manyworlds.capture_torch  # noqa: F401

    sys.exit(main(json.loads(sys.argv[1])))
