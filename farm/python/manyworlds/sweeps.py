"""Sweeps: the program runs them, as a process of its own with as many ranks as there are CPUs, and can be resumed."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from .documents import DICTIONARY, as_file, is_path, settings
from .errors import Failed, InputError, ManyworldsError
from .runs import Run

Progress = collections.namedtuple("Progress", "done total failed state eta_s")
Progress.__doc__ = """Tasks (simulations that experiments share) done and failed, of all; "running", …, and about how long still."""

EXIT_FAILED, EXIT_INPUT, EXIT_STOPPED = 3, 2, 75
LOOK_EVERY_S = 0.25
PATIENCE_S = 60  # of a run that was asked to stop, as it finishes its journal


def program():
    """The path of the program: $MANYWORLDS_PROGRAM, that of this package's wheel, or of PATH."""
    here = pathlib.Path(__file__).parent
    for path in (os.environ.get("MANYWORLDS_PROGRAM"), here / "bin" / "manyworlds", shutil.which("manyworlds")):
        if path and os.access(path, os.X_OK):
            return str(path)
    raise ManyworldsError("the program manyworlds is not in PATH; MANYWORLDS_PROGRAM may name it")


def sweep(spec, directory=None, ranks=None, set=None, catalog=None, store=None, progress=None, options=()):
    """Runs every experiment of a sweep and returns its Run.

    `spec` is a dict, the text of YAML, or the path of a file. The same call again resumes a run that was stopped, or
    finds it done. `directory` is the run directory (runs/NAME), `ranks` how many processes simulate, `store` the folder
    of results kept between runs, or "none"; `progress` is True for a line on stderr, or called with a Progress;
    `options` are further words for `manyworlds sweep`. Ctrl-C stops the run, to be resumed. Raises InputError, and Failed
    for a run that came to no end."""
    with as_file(spec) as path:
        name = directory if directory is not None else "runs/" + _name_of(spec, path)
        words = [program(), "sweep", path, "-o", os.fspath(name)]
        for option, value in (("-j", ranks), ("--catalog", catalog), ("--store", store)):
            words += [] if value is None else [option, str(value)]
        for one in settings(set):
            words += ["--set", one]
        code, said = _run([*words, *map(str, options)], pathlib.Path(name), _reporter(progress))
    said = [line for line in said.splitlines() if line.strip()]
    last = said[-1] if said else f"exit code {code}"
    if code == EXIT_INPUT:
        text = re.sub(r"^manyworlds sweep: ", "", next((line for line in said if line.startswith("manyworlds sweep: ")), last))
        file = path if is_path(spec) else DICTIONARY
        raise InputError(text.replace(f"{path}:", f"{file}:"), given=file)
    if code not in (0, EXIT_FAILED):
        run = Run(name, code) if (pathlib.Path(name) / "results.h5").is_file() else None
        state = "stopped on request; the same call continues" if code == EXIT_STOPPED else last
        raise Failed(f"{os.fspath(name)}: {state}", run)
    return Run(name, code)


def _name_of(spec, path):
    if isinstance(spec, dict):
        return str(spec.get("name", "experiment"))
    with open(path, encoding="utf-8") as file:
        found = re.search(r"^name:\s*['\"]?([^'\"#\n]+?)['\"]?\s*(?:#.*)?$", file.read(), re.MULTILINE)
    if not found:
        raise InputError(f"{path}: the document has no name: give a directory", given=path)
    return found[1]


def _run(words, directory, report):
    """Runs the program to its end: (exit code, what it said on stderr). A session of its own, as Ctrl-C is for Python."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                                 start_new_session=True)
        try:
            while True:
                try:
                    code = child.wait(LOOK_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    report(_progress(directory, child))
        except BaseException:
            _stop(child)
            raise
        report(_progress(directory, child))
        said.seek(0)
        return code, said.read()


def _stop(child):
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _progress(directory, child):
    """The state of the run, once it has one."""
    try:
        status = json.loads((directory / "status.json").read_text(encoding="utf-8"))
        return Progress(status["done"], status["total"], status["failed"], status["state"], status.get("eta_s"))
    except (OSError, ValueError, KeyError):
        return None


def _reporter(progress):
    seen = [None]

    def line(now):
        end = "\n" if now.state == "complete" else ""
        print(f"\r{now.done} of {now.total} simulations{f', {now.failed} failed' if now.failed else ''}", end=end, file=sys.stderr,
              flush=True)

    def report(now):
        if progress and now is not None and now != seen[0]:
            seen[0] = now
            (line if progress is True else progress)(now)

    return report
