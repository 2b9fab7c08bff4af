"""The program as its users start it, the bytes of its answers, and every process of a run: shared by the tests here."""

import ctypes
import hashlib
import os
import pathlib
import signal
import subprocess
import time
import uuid

import h5py

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])
PROGRAM = str(BUILD / "manyworlds")
SWEEPS = ROOT / "experiments" / "sweeps"
MARK = "MANYWORLDS_TEST_MARK"  # an environment variable by which a test knows every process of its run
PATIENCE_S = 1200  # what a test waits for a process that is to end by itself: a machine may be busy with a hundred others
# Some seconds of work on two cores, so that there is a middle to be killed in.
SLOW_SWEEP = """
name: slow
base:
  model: gpt3-6.7b
  cluster: {gpu: h100_sxm, nodes: 8, gpus_per_node: 8, nic_gbps: 400}
  strategy: {global_batch: 256, zero: 1}
axes:
  strategy.tp: [2, 4, 8]
  strategy.pp: [1, 2, 4]
  strategy.micro_batch: [1, 2]
  strategy.recompute: [none, full]
  topology: [{rail_optimized: {oversubscription: 1}}, {fat_tree: {oversubscription: 4}}]
assume: 2021
"""


def environment_in(directory, mark="", **more):
    """The caches of a run are its own; `mark` tells its processes from others'."""
    return {**os.environ, "XDG_CACHE_HOME": f"{directory}/cache", "XDG_DATA_HOME": f"{directory}/data", MARK: mark, **more}


def run(*words, directory, expect=0, mark="", program=PROGRAM, user=None, timeout=PATIENCE_S, **environment):
    done = subprocess.run([program, *map(str, words)], cwd=directory, timeout=timeout, capture_output=True, text=True,
                          env=environment_in(directory, mark, **environment), stdin=subprocess.DEVNULL, user=user)
    if done.returncode != expect:
        raise AssertionError(f"{words}: exit {done.returncode}, not {expect}\n{done.stdout}\n{done.stderr}")
    return done


def answer_digest(path):
    """Every byte of the answer's datasets and attributes, read without any code of ours."""
    digest = hashlib.sha256()
    with h5py.File(path) as file:
        def add(name, item):
            if name.startswith("provenance"):
                return
            digest.update(repr((name, sorted((k, str(v)) for k, v in item.attrs.items()))).encode())
            if isinstance(item, h5py.Dataset):
                digest.update(repr((item.dtype.str, item.shape)).encode())
                digest.update(item[()].tobytes())
        file.visititems(add)
    return digest.hexdigest()


def xxh3(data):
    """The checksum of our files, by the library itself."""
    function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return function(data, len(data))


def provenance(path):
    with h5py.File(path) as file:
        return {name: value.decode() if isinstance(value, bytes) else value
                for name, value in file["provenance"].attrs.items()}


def kill_and_resume(test, directory, *words):
    """Leaves the run `killed` of a sweep: killed as soon as it has kept anything, and gone on with."""
    mark = uuid.uuid4().hex
    test.addCleanup(kill_all, mark)
    killed = subprocess.Popen([PROGRAM, "sweep", *words, "-o", "killed", "--store", "none", "-j", "2"], cwd=directory,
                              env=environment_in(directory, mark), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + PATIENCE_S
    while killed.poll() is None and not list((directory / "killed").glob("journal/*")) and time.time() < deadline:
        time.sleep(0.01)
    kill_all(mark)
    killed.wait()
    run("resume", "killed", "--store", "none", directory=directory)


def marked(mark):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def rank_of(process):
    """The rank that an MPI launcher or srun gave a process of ours; None for any other, such as a simulator of a rank."""
    try:
        if pathlib.Path(f"/proc/{process}/exe").resolve() != pathlib.Path(PROGRAM).resolve():
            return None
        variables = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        parent = int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        if pathlib.Path(f"/proc/{parent}/exe").resolve() == pathlib.Path(PROGRAM).resolve():
            return None
    except OSError:
        return None
    for variable in variables:
        name, _, value = variable.partition(b"=")
        if name in (b"OMPI_COMM_WORLD_RANK", b"PMIX_RANK"):
            return int(value)
    return None


def kill_all(mark):
    """kill -9 for every process of the run, again until none is left: a dying parent may have forked."""
    killed = 0
    for _ in range(100):
        alive = marked(mark)
        if not alive:
            return killed
        for process in alive:
            try:
                os.kill(process, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    raise AssertionError("processes outlive kill -9")
