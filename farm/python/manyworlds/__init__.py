"""Manyworlds in Python: which of the ways to train a model on a cluster is best, by simulating each.

    import manyworlds as mw

    result = mw.run({"base": {...}})                       # one experiment, in this process
    run = mw.sweep("mine.yaml", "runs/mine", progress=True)  # many, by the program
    run.frame()                                            # pandas
    run.dataset()["step_time_s"]                           # xarray
    run.plot.breakdown()                                   # matplotlib

What a name needs is imported with the name, so that `python3 -m manyworlds.capture_torch` runs without the compiled module.
"""

import importlib

_PLACES = {"Failed": ("errors", "Failed"), "InputError": ("errors", "InputError"), "ManyworldsError": ("errors", "ManyworldsError"),
           "Result": ("experiment", "Result"), "names": ("experiment", "names"), "run": ("experiment", "run"),
           "Run": ("runs", "Run"), "open": ("runs", "open_run"), "Progress": ("sweeps", "Progress"), "sweep": ("sweeps", "sweep"),
           "build": ("_native", "build"), "__version__": ("_native", "version")}
__all__ = ["Failed", "InputError", "ManyworldsError", "Progress", "Result", "Run", "build", "names", "open", "run", "sweep"]


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(f"module 'manyworlds' has no attribute '{name}'")
    module, own_name = _PLACES[name]
    value = getattr(importlib.import_module(f".{module}", __name__), own_name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_PLACES})
