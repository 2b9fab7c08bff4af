"""One experiment, simulated in this process. Other threads of Python run meanwhile, and Ctrl-C ends it."""

import json

from . import _native
from .documents import DICTIONARY, read, settings
from .errors import Failed, InputError, ManyworldsError


class Result:
    """What a simulated step takes. Every column of the results is an attribute: `mfu`, `memory_peak_bytes`, …"""

    def __init__(self, columns):
        self._columns = columns

    def __getattr__(self, name):
        try:
            return self.__dict__["_columns"][name]
        except KeyError:
            raise AttributeError(f"a result has no '{name}'; it has {', '.join(self.__dict__.get('_columns', ()))}") from None

    def __dir__(self):
        return [*super().__dir__(), *self._columns]

    @property
    def interval(self):
        """(low, high) of the step time in seconds: 80 % of such predictions were within."""
        return self.step_time_low_s, self.step_time_high_s

    @property
    def memory(self):
        """Bytes of peak memory by what they hold: weights, gradients, optimizer, …"""
        return {name[len("memory_"):-len("_bytes")]: value for name, value in self._columns.items()
                if name.startswith("memory_") and name.endswith("_bytes") and name != "memory_peak_bytes"}

    @property
    def breakdown(self):
        """Seconds of the step by what they are spent on, mean over ranks: their sum is the step time."""
        names = list(self._columns)
        if "forward_s" not in names:
            return {}
        parts = names[names.index("forward_s"):]
        parts = parts[:next((i for i, name in enumerate(parts) if not name.endswith("_s")), len(parts))]
        return {name[:-2]: self._columns[name] for name in parts}

    @property
    def ran(self):
        return self.status == "ran"

    def to_dict(self):
        return dict(self._columns)

    def __repr__(self):
        if not self.ran:
            return f"<Result {self.name}: {self.status}{': ' + self.reason if self.reason else ''}>"
        low, high = self.interval
        interval = "" if low is None else f" (80 %: {low:.4g} to {high:.4g} s)"
        return (f"<Result {self.name}: {self.step_time_s:.4g} s a step{interval}, {self.tokens_per_s_per_gpu:,.0f} tokens/s/GPU, "
                f"{100 * self.mfu:.1f} % MFU, {self.memory_peak_bytes / 2**30:.1f} GiB>")


def run(spec, set=None, catalog=None, experiment=None, coupled=False, progress=None):
    """Simulates one experiment and returns its Result.

    `spec` is a dict, the text of YAML, or the path of a file; `set` has settings in place of its own, {"strategy.tp": 4}
    or ["strategy.tp=4"]; `catalog` a folder with more models, GPUs, clusters; `experiment` picks one of a sweep by its id;
    `coupled` simulates all packets in one event loop, the slow oracle; `progress` is called with (simulations done,
    simulations, simulated seconds of the step). Raises InputError, and Failed for a simulation that failed; an
    experiment that does not fit into memory has a Result, whose status says so."""
    try:
        text, file = read(spec)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", given=str(error.filename)) from None
    try:
        columns = json.loads(_native.run(text, file, settings(set), "" if catalog is None else str(catalog), experiment,
                                         coupled, progress))
    except _native.InputError as error:
        raise InputError(str(error), given=file if file != DICTIONARY else None) from None
    except _native.IoError as error:
        raise ManyworldsError(str(error)) from None
    if columns["status"] == "failed":
        raise Failed(f"{columns['name']}: {columns['reason']}")
    return Result(columns)


def names(kind, catalog=None):
    """The names that a document may use of a kind: models, gpus, clusters, stacks, topologies, …"""
    try:
        return _native.names(kind, "" if catalog is None else str(catalog))
    except _native.InputError as error:
        raise InputError(str(error)) from None
