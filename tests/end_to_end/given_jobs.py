"""Jobs as program files."""

import json


def job(layers=4, micro_batches=3):
    """16 ranks: tensor-parallel groups of 4 in nodes, two stages of two replicas each; gradients on a stream of their own."""
    lines = [{"manyworlds_program": 1, "name": "job", "gpu": "h100_sxm", "tokens_per_step": 65536}]
    for dimension, kind, part in (("tp", "groups", "exposed_tp"), ("dp", "groups", "exposed_dp"),
                                ("forward", "pairs", "exposed_pp"), ("backward", "pairs", "exposed_pp")):
        lines.append({"dimension": dimension, "kind": kind, "part": part})
    lines.append({"groups": "tp", "ranks": [[4 * node + i for i in range(4)] for node in range(4)]})
    lines.append({"groups": "dp", "ranks": [[8 * stage + i, 8 * stage + 4 + i] for stage in range(2) for i in range(4)]})
    lines.append({"groups": "forward", "ranks": [[rank, rank + 8] for rank in range(8)]})
    lines.append({"groups": "backward", "ranks": [[rank + 8, rank] for rank in range(8)]})
    for stage in range(2):
        lines.append({"program": f"stage {stage}", "ranks": "0-7" if stage == 0 else "8-15",
                      "streams": ["compute", "gradients", "receive"], "host_streams": ["host"]})
        at = 0

        def add(line, after=()):
            nonlocal at
            lines.append({**line, **({"after": sorted(after)} if after else {})})
            at += 1
            return at - 1

        for micro_batch in range(micro_batches):
            for part in ("forward", "backward"):
                receives = (part == "forward") == (stage == 1)
                arrived = [add({"receive": part, "bytes": 4 << 20, "stream": "receive"})] if receives else []
                for layer in range(layers):
                    launch = add({"host": "launch", "us": 4, "stream": "host"})
                    kernel = add({"kernel": f"layer_{part}", "us": 310.5 if part == "forward" else 603.25,
                                  "part": part, "stream": "compute"}, [launch, *arrived])
                    arrived = []
                    reduced = add({"collective": "all_reduce", "in": "tp", "bytes": 8 << 20, "stream": "compute"}, [kernel])
                    if part == "backward" and micro_batch == micro_batches - 1:
                        add({"collective": "all_reduce", "in": "dp", "bytes": 50 << 20, "stream": "gradients"}, [reduced])
                if not receives:
                    add({"send": part, "bytes": 4 << 20, "stream": "compute"})
        add({"kernel": "adam", "us": 900, "part": "optimizer", "stream": "compute"}, [at - 1])
    return "".join(json.dumps(line) + "\n" for line in lines)


def layers(count=8):
    """Two replicas of some layers, whose gradients of 10 MB each are reduced beside the backward pass."""
    lines = [{"manyworlds_program": 1, "name": "job", "gpu": "h100_sxm", "tokens_per_step": 8192},
             {"dimension": "dp", "part": "exposed_dp"}, {"groups": "dp", "ranks": [[0, 1]]},
             {"program": "all", "ranks": "0-1", "streams": ["compute", "nccl"]}]
    matmul = {"gemm": [4096, 4096, 4096, 1], "stream": "compute"}
    for layer in range(count):
        lines.append({"kernel": "matmul", "us": 300, "part": "forward", **matmul})
        lines.append({"kernel": "gelu", "us": 20, "part": "forward", "stream": "compute"})
        lines.append({"kernel": "gelu_bias", "us": 10, "part": "forward", "stream": "compute"})
    reductions = []
    for layer in range(count):
        lines.append({"kernel": "matmul", "us": 600, "part": "backward", **matmul})
        reductions.append(len(lines) - 4)
        lines.append({"collective": "all_reduce", "in": "dp", "bytes": 10_000_000, "stream": "nccl",
                      "after": [len(lines) - 5]})
    lines.append({"kernel": "adam", "us": 100, "part": "optimizer", "stream": "compute", "after": reductions})
    return "".join(json.dumps(line) + "\n" for line in lines)
