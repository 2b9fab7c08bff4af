"""The results of a sweep, from its run directory: as pandas, as xarray, as pictures."""

import functools
import os
import pathlib

from .errors import InputError


class Run:
    """A run directory, or its results.h5; what is in it is read once and kept until refresh()."""

    def __init__(self, directory, exit_code=0):
        path = pathlib.Path(directory)
        self.directory = path.parent if path.name == "results.h5" else path
        self.exit_code = exit_code  # of the program that ran it: 3 if some experiments failed, or none fits
        self._file = self.directory / "results.h5"
        if not self._file.is_file():
            raise InputError(f"{self.directory}: there is no results.h5 in it", given=str(self.directory))

    def refresh(self):
        """Reads again, of a run that goes on."""
        for name in ("_tables", "attributes"):
            self.__dict__.pop(name, None)
        return self

    @functools.cached_property
    def attributes(self):
        """How it was computed (host, build, seconds, …), its `objective`, its `axes` and its `spec`."""
        import h5py

        with h5py.File(self._file) as file:
            found = {name: _plain(value) for name, value in file["provenance"].attrs.items()}
            found["axes"] = [_plain(axis) for axis in file["experiments"].attrs["axes"]]
            found["spec"] = _plain(file["spec"][()])
            return found

    @functools.cached_property
    def _tables(self):
        return {}

    def table(self, name="experiments"):
        """A table as a DataFrame: experiments, excluded, subsimulations/kernels, …; units are in .attrs['units']."""
        import h5py
        import pandas

        if name not in self._tables:
            with h5py.File(self._file) as file:
                if name not in file:
                    raise InputError(f"{self._file}: there is no table '{name}'", given=str(self._file))
                columns = {key: column[:] for key, column in file[name].items()}
                frame = pandas.DataFrame({key: _text(values) if values.dtype.kind == "S" else values
                                          for key, values in columns.items()})
                frame.attrs["units"] = {key: _plain(column.attrs.get("unit", "")) for key, column in file[name].items()}
                frame.attrs["descriptions"] = {key: _plain(column.attrs.get("description", ""))
                                               for key, column in file[name].items()}
            self._tables[name] = frame
        return self._tables[name].copy()

    def frame(self):
        """Every experiment as a row of a DataFrame, in the order of the sweep."""
        return self.table()

    @property
    def axes(self):
        return self.attributes["axes"]

    def top(self, k=10, by=None, ascending=None):
        """The best experiments that ran, by a column or the run's objective: the largest, of times and bytes the smallest."""
        frame = self.frame()
        by = by or self.attributes.get("objective", "tokens_per_s_per_gpu")
        if by not in frame:
            raise InputError(f"{self._file}: there is no column '{by}'", given=str(self._file))
        if ascending is None:
            ascending = frame.attrs["units"][by] in ("s", "ps", "bytes", "J", "USD")
        ran = frame[frame["status"] == "ran"]
        return ran.sort_values([by, "id"], ascending=[ascending, True]).head(k)

    def dataset(self, fastest=True):
        """The experiments as an xarray Dataset, with a dimension for each axis that has several values.

        What no experiment has (combinations that are excluded, or that zipped axes do not make) is NaN. Of several
        experiments in one cell the fastest stands for all, or with fastest=False they are an error."""
        frame = self.frame()
        axes = [axis for axis in self.axes if axis in frame and frame[axis].nunique() > 1
                and not any(axis.startswith(other + ".") for other in self.axes)]
        if not axes:
            raise InputError(f"{self._file}: no axis has several values, so there is nothing to span an array with",
                             given=str(self._file))
        columns = [name for name in frame if name not in self.axes]
        if fastest:
            frame = frame.sort_values(["step_time_s", "id"], na_position="last").drop_duplicates(axes)
        elif frame.duplicated(axes).any():
            raise InputError(f"{self._file}: several experiments have the same {', '.join(axes)}; fastest=True takes one",
                             given=str(self._file))
        dataset = frame.set_index(axes).sort_index()[columns].to_xarray()
        for name in dataset.data_vars:
            dataset[name].attrs["units"] = frame.attrs["units"][name]
            dataset[name].attrs["long_name"] = frame.attrs["descriptions"][name]
        return dataset

    @property
    def plot(self):
        """Pictures: .plot.breakdown(), .plot.throughput_against_memory(), .plot.axis(name)."""
        from .plot import Plots

        return Plots(self)

    def __len__(self):
        return len(self.frame())

    def __repr__(self):
        frame = self.frame()
        counts = ", ".join(f"{count} {status}" for status, count in frame["status"].value_counts().items())
        return f"<Run {os.fspath(self.directory)}: {len(frame)} experiments, {counts}>"


def open_run(directory):
    """The Run of an existing run directory, or of its results.h5; it may still be running."""
    return Run(directory)


def _plain(value):
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def _text(values):
    return [value.decode("utf-8") for value in values]
