"""Runs a script as one rank of a real job over gloo, and writes what its collectives were: observed.py SCRIPT FILE.

Calls of torch.distributed are counted by wrapping its functions. Those of DistributedDataParallel's reducer, which is C++, are in
the profiler's events, with their shapes.
"""
import json
import os
import runpy
import sys

import torch
import torch.distributed as dist

SCRIPT, OUTPUT = sys.argv[1:3]
calls = []


def size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def members(group):
    group = group or dist.distributed_c10d._get_default_group()
    return sorted(dist.distributed_c10d._pg_group_ranks[group])


def wrapped(name, describe):
    function = getattr(dist.distributed_c10d, name)

    def call(*args, **kwargs):
        calls.append(describe(*args, **kwargs))
        return function(*args, **kwargs)

    setattr(dist.distributed_c10d, name, call)
    setattr(dist, name, call)


wrapped("all_reduce", lambda tensor, op=None, group=None, async_op=False: ["all_reduce", size([tensor]), members(group)])
wrapped("all_gather", lambda tensors, tensor, group=None, async_op=False: ["all_gather", size(tensors), members(group)])
wrapped("broadcast", lambda tensor, src, group=None, async_op=False: ["broadcast", size([tensor]), members(group)])
for name, kind in (("send", "send"), ("isend", "send"), ("recv", "receive"), ("irecv", "receive")):
    wrapped(name, lambda tensor, peer, group=None, tag=0, kind=kind: [kind, size([tensor]), [peer]])
sys.argv = [SCRIPT]
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
    runpy.run_path(SCRIPT, run_name="__main__")
shapes = [[event.time_range.start, event.input_shapes] for event in profiler.events() if event.name == "gloo:all_reduce"]
events = sorted([event.time_range.start, event.name[5:], event.input_shapes] for event in profiler.events() if event.name.startswith("gloo:"))
with open(OUTPUT, "w", encoding="utf-8") as file:
    json.dump({"calls": calls, "all_reduces": [shape for _, shape in sorted(shapes)], "events": [event[1:] for event in events],
               "rank": int(os.environ["RANK"])}, file)
