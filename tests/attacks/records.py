"""Records of a journal or a store that somebody changed and whose checksums he mended: every run ends as an undisturbed
one does, with the same answer, and names the records; the store's own check finds them."""

import ctypes
import pathlib
import random
import shutil
import struct
import tempfile
import unittest

from program import SWEEPS, answer_digest, provenance, run
from tally import Tally

XXHASH = ctypes.CDLL("libxxhash.so.0")
XXHASH.XXH3_64bits_withSeed.restype = ctypes.c_uint64
XXHASH.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def xxh3(data, seed=0):
    return XXHASH.XXH3_64bits_withSeed(data, len(data), seed)


def records_of(data):
    """The file's header, and [kind, key, payload] of each record."""
    at = 24 + struct.unpack_from("<I", data, 12)[0]
    header, records = data[:at], []
    while at < len(data):
        kind, size = struct.unpack_from("<IQ", data, at + 4)
        records.append([kind, data[at + 16:at + 56], data[at + 72:at + 72 + size]])
        at += 72 + size
    return header, records


def file_of(header, records):
    data = header
    for kind, key, payload in records:
        head = b"MWRC" + struct.pack("<IQ", kind, len(payload)) + key + struct.pack("<Q", xxh3(payload))
        data += head + struct.pack("<Q", xxh3(head, len(data))) + payload
    return data


def keyed(key, result):
    return result + struct.pack("<Q", xxh3(result, xxh3(key)))


def flipped(payload, chance):
    changed = bytearray(payload)
    for _ in range(3):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def each(change, also_inside=True):
    """Every payload changed; with the inner check as it was, and made to fit."""
    outer = {"": lambda records, chance: [[kind, key, change(payload, chance)] for kind, key, payload in records]}
    if also_inside:
        outer[", inner check mended"] = lambda records, chance: [
            [kind, key, keyed(key, change(payload[:-8], chance))] for kind, key, payload in records]
    return outer


def moved(records, chance):
    payloads = [payload for _, _, payload in records]
    return [[kind, key, payload] for (kind, key, _), payload in zip(records, payloads[1:] + payloads[:1])]


def collided(records, chance):
    return [[kind, key[:16] + bytes(24), keyed(key[:16] + bytes(24), payload[:-8])] for kind, key, payload in records]


def failed(records, chance):
    return [[2, key, payload] for _, key, payload in records]


CHANGES = {name + more: change for name, one in {
    "empty": each(lambda payload, chance: b""),
    "cut": each(lambda payload, chance: payload[:chance.randrange(len(payload))]),
    "random": each(lambda payload, chance: chance.randbytes(len(payload))),
    "all ones": each(lambda payload, chance: b"\xff" * len(payload)),
    "longer": each(lambda payload, chance: payload + chance.randbytes(50)),
    "bits flipped": each(flipped, also_inside=False),
    "more bits flipped": each(flipped, also_inside=False),
    "moved to other keys": {"": moved},
    "colliding keys": {"": collided},
    "results as failures": {"": failed},
}.items() for more, change in one.items()}


class Records(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-records-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.sweep("base", "store")
        self.expected = answer_digest(self.directory / "base/results.h5")
        self.chance = random.Random(3)

    def sweep(self, where, store):
        return run("sweep", SWEEPS / "tiny.yaml", "-o", where, "--store", store, "-j", 1, "--in-process",
                   directory=self.directory)

    def changed(self, pattern, change):
        """The one record file that fits `pattern`, changed in place."""
        path, = self.directory.glob(pattern)
        header, records = records_of(path.read_bytes())
        self.assertEqual(file_of(header, records), path.read_bytes())
        path.write_bytes(file_of(header, change(records, self.chance)))
        return path

    def attack(self, tally, name, path, act, where):
        try:
            done = act()
            same = answer_digest(self.directory / where / "results.h5") == self.expected
            named = f"{path}: the record at byte " in done.stderr and "does not hold the result of its key" in done.stderr
            known = provenance(self.directory / where / "results.h5")
            tally.note(name, same and named and known["tasks_computed"] > 0, f"same {same}, named {named}: {done.stderr[-400:]}")
        except AssertionError as error:
            tally.note(name, False, str(error)[-400:])

    def test_a_store_of_changed_records_costs_time_and_no_answer(self):
        tally = Tally("changed records in a store")
        for name, change in CHANGES.items():
            if change is failed:  # a store has no failures
                continue
            for folder in ("changed", "run"):
                shutil.rmtree(self.directory / folder, ignore_errors=True)
            shutil.copytree(self.directory / "store", self.directory / "changed")
            path = self.changed("changed/*/*.segment", change).relative_to(self.directory)
            mended = name.endswith("mended") or change is collided  # only a run can tell what a result should be
            checked = run("store", "verify", "--store", "changed", directory=self.directory, expect=0 if mended else 3)
            tally.note("store verify", mended or f"{path}: the record at byte " in checked.stdout, checked.stdout)
            self.attack(tally, name, path, lambda: self.sweep("run", "changed"), "run")
        tally.check(self)

    def test_a_journal_of_changed_records_costs_time_and_no_answer(self):
        tally = Tally("changed records in a journal")
        for name, change in CHANGES.items():
            if change is collided:  # keys that nobody asks for
                continue
            shutil.rmtree(self.directory / "run", ignore_errors=True)
            shutil.copytree(self.directory / "base", self.directory / "run")
            path = self.changed("run/journal/*.journal", change).relative_to(self.directory)
            self.attack(tally, name, path, lambda: run("resume", "run", "--store", "none", "-j", 1, "--in-process",
                                                       directory=self.directory), "run")
        tally.check(self)

    def test_merging_leaves_changed_records_behind(self):
        tally = Tally("changed records in merged runs")
        shutil.copytree(self.directory / "base", self.directory / "bad")
        path = self.changed("bad/journal/*.journal", CHANGES["longer, inner check mended"]).relative_to(self.directory)
        done = run("merge", "bad", "base", "-o", "merged", directory=self.directory)
        same = answer_digest(self.directory / "merged/results.h5") == self.expected
        tally.note("beside a sound run", same and f"{path}: the record at byte " in done.stderr, done.stderr)
        tally.check(self)


if __name__ == "__main__":
    unittest.main(verbosity=2)
