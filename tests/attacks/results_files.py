"""Results files made by somebody else, with seals that fit, read by every verb that reads one: each ends with 0 or 2
(1 where two answers differ) and a refusal of one line, within a gibibyte of address space."""

import ctypes
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest

import h5py
import numpy

from program import PROGRAM, SWEEPS, environment_in, run
from tally import Tally

XXHASH = ctypes.CDLL("libxxhash.so.0")
XXHASH.XXH3_64bits.restype, XXHASH.XXH3_64bits.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
COLUMN = "experiments/reason"
REQUIRED = ("id", "status", "step_time_s", "tokens_per_s_per_gpu", "memory_peak_bytes")


def sealed(image):
    return image + b"MWSEALED" + struct.pack("<QQ", len(image), XXHASH.XXH3_64bits(image, len(image)))


def text_type(size):
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(size)
    kind.set_strpad(h5py.h5t.STR_NULLPAD)
    kind.set_cset(h5py.h5t.CSET_UTF8)
    return kind


def put_column(file, path, kind, rows, creation=None):
    """A dataset without values, with the attributes of a column."""
    del file[path]
    dataset = h5py.h5d.create(file.id, path.encode(), kind, h5py.h5s.create_simple((rows,)), creation)
    for name in (b"unit", b"description"):
        attribute = h5py.h5a.create(dataset, name, text_type(1), h5py.h5s.create(h5py.h5s.SCALAR))
        attribute.write(numpy.array(b"x", dtype="S1"), mtype=text_type(1))


def creation_of(chunk=None, external=None):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunk:
        creation.set_chunk((chunk,))
    if external:
        creation.set_external(b"/etc/passwd", 0, external)
    return creation


def bomb(rows):
    def edit(file):
        for name in list(file["experiments"]):
            size = file["experiments"][name].dtype
            kind = text_type(size.itemsize) if size.kind == "S" else h5py.h5t.py_create(size)
            put_column(file, f"experiments/{name}", kind, rows, creation_of(chunk=1024))
    return edit


def texts(rows, width, **creation):
    return lambda file: put_column(file, COLUMN, text_type(width), rows, creation_of(**creation))


def link(target):
    def edit(file):
        del file[COLUMN]
        file[COLUMN] = target
    return edit


def group(file):
    del file[COLUMN]
    file.create_group(COLUMN)


def spec_of_another_file(file):
    del file["spec"]
    h5py.h5d.create(file.id, b"spec", text_type(400), h5py.h5s.create_simple((1,)), creation_of(external=400))


def many_names(file):
    for i in range(3000):
        file[f"subsimulations/kernels/n{i}"] = file["subsimulations/kernels/key"]


def without(name):
    def edit(file):
        del file[f"experiments/{name}"]
    return edit


def lie(name, *values):
    def edit(file):
        column = file[f"experiments/{name}"]
        for row in range(column.shape[0]):
            column[row] = values[row % len(values)]
    return edit


def lie_of_provenance(name, value):
    def edit(file):
        file["provenance"].attrs.modify(name, value)
    return edit


NAN, INF = float("nan"), float("inf")
EDITS = {
    **{f"{rows} rows never written": bomb(rows) for rows in (10 ** 5, 2 * 10 ** 7, 10 ** 8, 2 ** 62)},
    "rows times width beyond 64 bits": texts(2 ** 32 + 1, 2 ** 32 - 1),
    "texts of 4 GiB": texts(12, 2 ** 32 - 1),
    "a column of another file": texts(12, 60, external=720),
    "a spec of another file": spec_of_another_file,
    "an external link": link(h5py.ExternalLink("/etc/other.h5", "/x")),
    "a link in a circle": link(h5py.SoftLink("/experiments")),
    "a group for a column": group,
    "three thousand names": many_names,
    **{f"no {name}": without(name) for name in REQUIRED},
    **{f"{name} of {values}": lie(name, *values) for name in ("step_time_s", "tokens_per_s_per_gpu", "step_time_bound_s", "tokens_per_s_per_gpu_bound")
       for values in ((NAN,), (INF,), (-INF, INF), (-1e308, 1e308), (1e308, INF, NAN), (0.0,), (5e-324, 0.1),
                      (1.0, 1.0000000000000002), (1e20, 1e20 + 16384))},
    **{f"{name} of {values}": lie(name, *values) for name in ("id", "step_time_ps", "memory_peak_bytes")
       for values in ((-1,), (3,), (2 ** 63 - 1,), (-2 ** 63, 2 ** 63 - 1))},
    "a status nobody knows": lie("status", b"bogus"),
    "a rung nobody knows": lie("bounded_by", b"bogus"),
    **{f"no {name}": without(name) for name in ("step_time_bound_s", "tokens_per_s_per_gpu_bound", "bounded_by", "gpu_memory_bytes")},
    **{f"the best {value}": lie_of_provenance("best", value) for value in (-1, 0, 2 ** 63 - 1)},
    **{f"a gap of {value}": lie_of_provenance("best_gap", value) for value in (NAN, INF, -1.0)},
}
VERBS = (("top",), ("top", "--json"), ("export", "--csv"), ("report", "-o", "page.html"),
         ("report", "--md", "-o", "page.md"), ("explain",), ("explain", "--json"), ("compare", "4", "8"), ("compare", "4", "8", "--json"), ("diff", "sound.h5"))


class ResultsFiles(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-results-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        run("sweep", SWEEPS / "tiny.yaml", "-o", "run", "--store", "none", "-j", 1, "--in-process", "--best", "4",
            directory=self.directory)
        shutil.copy(self.directory / "run/results.h5", self.directory / "sound.h5")
        self.image = (self.directory / "sound.h5").read_bytes()[:-24]
        self.tally = Tally("results files of others")

    def attack(self, sort, name, image, verbs):
        (self.directory / "evil.h5").write_bytes(sealed(image))
        for verb, *words in verbs:
            done = subprocess.run([PROGRAM, verb, "evil.h5", *words], cwd=self.directory, timeout=600, text=True,
                                  capture_output=True, env=environment_in(self.directory), stdin=subprocess.DEVNULL,
                                  errors="replace",
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
            fine = done.returncode in ((0, 1, 2) if verb == "diff" else (0, 2))
            one_line = done.returncode != 2 or done.stderr.count("\n") == 1
            self.tally.note(sort, fine and one_line, f"{name}, {verb}: {done.returncode} {done.stderr[-300:]}")

    def test_files_made_with_hdf5_are_read_or_refused(self):
        for name, edit in EDITS.items():
            (self.directory / "edited.h5").write_bytes(self.image)
            with h5py.File(self.directory / "edited.h5", "a", libver=("earliest", "v108")) as file:
                edit(file)
            self.attack("made with HDF5", name, (self.directory / "edited.h5").read_bytes(), VERBS)
        self.tally.check(self)

    def test_files_changed_byte_by_byte_are_read_or_refused(self):
        chance = random.Random(4)
        for number in range(80):
            image = bytearray(self.image)
            for _ in range(1 + number % 8):
                if number % 3 == 0:  # a word of what HDF5 keeps about the file lies at its beginning and among the data
                    at = chance.randrange(len(image) - 8)
                    image[at:at + 8] = struct.pack("<Q", chance.choice((0, 2 ** 64 - 1, 2 ** 63, chance.randrange(2 ** 32))))
                else:
                    image[chance.randrange(len(image))] = chance.randrange(256)
            cut = chance.randrange(len(image)) if number % 10 == 9 else len(image)
            self.attack("bytes changed", f"number {number}", bytes(image[:cut]), [VERBS[number % len(VERBS)]])
        self.tally.check(self)


if __name__ == "__main__":
    unittest.main(verbosity=2)
