"""The command line of a capture: a process for each rank, and one file of what all of them did."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from .document import document
from .recorder import Unsupported

BAD_INPUT = 2
ENDED = "ended"  # begins the name of a file that says that a rank did


def ranks_of(text, world):
    """Ranks of `all`, or of numbers and ranges with commas between them."""
    if text == "all":
        return list(range(world))
    ranks = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise Unsupported(f"--ranks must be 'all' or like 0-3,8, not '{text}'")
        ranks |= set(range(int(first), int(last or first) + 1))
    if max(ranks) >= world:
        raise Unsupported(f"--ranks has rank {max(ranks)}, and ranks are 0 to {world - 1}")
    return sorted(ranks)


def arguments():
    parser = argparse.ArgumentParser(
        prog="python3 -m manyworlds.capture_torch", allow_abbrev=False,
        description="Runs a PyTorch training script without a GPU and writes what its ranks do as a program file (docs/capture_torch.md).")
    parser.add_argument("--world", type=int, default=1, metavar="N", help="ranks of the job (default: 1)")
    parser.add_argument("--ranks", default="all", metavar="RANKS",
                        help="those that are captured, such as 0-3,8; any other does as the captured one before it (default: all)")
    parser.add_argument("--per-node", type=int, metavar="N", help="ranks on a node (default: 8, or all if there are fewer)")
    parser.add_argument("--steps", choices=("last", "all"), default="last", help="the last step, or all that the script does (default: last)")
    parser.add_argument("--tokens", type=int, metavar="N", help="tokens of a step on all ranks together")
    parser.add_argument("--gpu", default="NVIDIA H100 80GB HBM3", metavar="NAME", help="what the script is told of its GPU's name")
    parser.add_argument("--gpu-memory", type=float, default=80, metavar="GIB", help="and of its memory (default: 80)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="ranks that run at one time")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the program file that is written")
    parser.add_argument("script", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def capture(options, rank, ranks, folder):
    """Runs the script as `rank`, one of `ranks`; returns (exit code, what it printed, what it did)."""
    output, told = pathlib.Path(folder) / f"{rank}.json", pathlib.Path(folder) / "told"
    per_node = options.per_node or min(options.world, 8)
    settings = {"rank": rank, "world": options.world, "local_rank": rank % per_node, "per_node": per_node, "script": options.script,
                "arguments": options.arguments, "steps": options.steps, "output": str(output), "gpu": options.gpu,
                "memory_bytes": int(options.gpu_memory * (1 << 30)), "told": str(told), "captured": ranks}
    package = pathlib.Path(__file__).resolve().parents[2] if "manyworlds" not in sys.modules else \
        pathlib.Path(sys.modules["manyworlds"].__path__[0]).parent
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RANK": str(rank), "WORLD_SIZE": str(options.world),
                   "LOCAL_RANK": str(rank % per_node), "LOCAL_WORLD_SIZE": str(per_node), "GROUP_RANK": str(rank // per_node),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1"}
    told.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-m", "manyworlds.capture_torch.rank", json.dumps(settings)], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
    (told / f"{ENDED}-{rank}").touch()
    return done, json.loads(output.read_text()) if done.returncode == 0 else None


def main(words):
    """Returns the exit code: 0, 2 for what is not understood, 3 if the script ended with an exception."""
    options = arguments().parse_args(words)
    try:
        import torch  # noqa: F401
    except ImportError:
        print("manyworlds: error: torch is not installed for this python3; Debian's is python3-torch", file=sys.stderr)
        return BAD_INPUT
    try:
        if options.world < 1 or not os.path.isfile(options.script):
            raise Unsupported(f"there is no script '{options.script}'" if options.world > 0 else "--world must be 1 or more")
        ranks = ranks_of(options.ranks, options.world)
        captures = {}
        with tempfile.TemporaryDirectory(prefix="manyworlds-capture-") as folder, \
                concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
            for rank, (done, result) in zip(ranks, pool.map(lambda rank: capture(options, rank, ranks, folder), ranks)):
                if rank == ranks[0]:
                    sys.stdout.write(done.stdout)
                if result is None:
                    pool.shutdown(wait=False, cancel_futures=True)
                    print(done.stderr, end="", file=sys.stderr)
                    print(f"manyworlds: rank {rank} was not captured", file=sys.stderr)
                    return done.returncode if done.returncode > 0 else BAD_INPUT
                captures[rank] = result
        text = document(captures, options.world, pathlib.Path(options.script).stem, options.tokens)
    except Unsupported as error:
        print(f"manyworlds: error: {error}", file=sys.stderr)
        return BAD_INPUT
    pathlib.Path(options.output).write_text(text, encoding="utf-8")
    programs = text.count('\n{"program":')
    print(f"{options.output}: {len(ranks)} of {options.world} ranks captured, {programs} programs")
    for note in json.loads(text.split("\n", 1)[0])["notes"]:
        print(f"  {note}")
    return 0
