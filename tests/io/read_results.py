"""Reads /experiments of a results file into pandas by the one-liner of the design, and prints it as JSON.

Usage: read_results.py FILE
"""
import json
import sys

import h5py
import pandas


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    return None if value != value else value


with h5py.File(sys.argv[1], "r") as f:
    frame = pandas.DataFrame({k: f["experiments"][k][:] for k in f["experiments"]})
    print(json.dumps({
        "columns": list(frame.columns),
        "dtypes": [str(t) for t in frame.dtypes],
        "rows": [[plain(v) for v in row] for row in frame.values.tolist()],
        "units": {k: f["experiments"][k].attrs["unit"].decode() for k in f["experiments"]},
        "descriptions": {k: f["experiments"][k].attrs["description"].decode() for k in f["experiments"]},
        "axes": [a.decode() for a in f["experiments"].attrs["axes"]],
        "format_version": int(f.attrs["format_version"]),
        "generator": f.attrs["generator"].decode(),
        "spec": f["spec"][()].decode(),
        "excluded": {k: len(f["excluded"][k]) for k in f["excluded"]},
        "tables": sorted(f["subsimulations"]),
        "ranks": int(f["provenance"].attrs["ranks"]),
    }))
