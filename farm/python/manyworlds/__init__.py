"""Manyworlds in Python: which of the ways to train a model on a cluster is best, by simulating each.

    import manyworlds as mw

    result = mw.run({"base": {...}})                       # one experiment, in this process
    run = mw.sweep("mine.yaml", "runs/mine", progress=True)  # many, by the program
    run.frame()                                            # pandas
    run.dataset()["step_time_s"]                           # xarray
    run.plot.breakdown()                                   # matplotlib
"""

from ._native import build, version as __version__
from .errors import Failed, InputError, ManyworldsError
from .experiment import Result, names, run
from .runs import Run, open_run as open
from .sweeps import Progress, sweep

__all__ = ["Failed", "InputError", "ManyworldsError", "Progress", "Result", "Run", "build", "names", "open", "run", "sweep"]
