"""A strict reader of the Trace Event Format, as far as Manyworlds writes it: whatever it does not know is an error."""

import json
from decimal import Decimal

REQUIRED = {  # keys of an event by its phase, and those of its arguments where they are fixed
    "M": {"ph", "name", "pid", "args"},
    "B": {"ph", "pid", "tid", "ts", "name", "cat", "args"},
    "E": {"ph", "pid", "tid", "ts", "name"},
    "C": {"ph", "pid", "ts", "name", "args"},
}
METADATA = {"process_name": "name", "process_sort_index": "sort_index", "thread_name": "name",
            "thread_sort_index": "sort_index"}
OF_THREADS = {"thread_name", "thread_sort_index"}


def in_ps(ts):
    """Picoseconds of a timestamp in microseconds, which has all six decimals."""
    assert isinstance(ts, Decimal) and ts.as_tuple().exponent == -6 and ts >= 0, ts
    return int(ts * 1_000_000)


class Trace:
    """threads: (pid, tid) -> [(begin_ps, end_ps, name, category, args)]; counters: (pid, name) -> [(ps, args)]."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            whole = json.load(file, parse_float=Decimal, object_pairs_hook=self.no_key_twice)
        assert set(whole) == {"displayTimeUnit", "otherData", "traceEvents"}, set(whole)
        assert whole["displayTimeUnit"] in ("ms", "ns")
        self.about = whole["otherData"]
        self.names, self.threads, self.counters = {}, {}, {}
        self.open, self.now = {}, {}
        for event in whole["traceEvents"]:
            getattr(self, "phase_" + event["ph"])(event)
        assert not any(self.open.values()), "slices that do not end"
        self.end = max(self.now.values())

    @staticmethod
    def no_key_twice(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), pairs
        return dict(pairs)

    def keys(self, event, extra=()):
        assert set(event) == REQUIRED[event["ph"]] | set(extra), event
        for key in ("pid", "tid"):
            assert key not in event or (isinstance(event[key], int) and event[key] > 0), event

    def phase_M(self, event):
        of_thread = event["name"] in OF_THREADS
        self.keys(event, {"tid"} if of_thread else ())
        value = METADATA[event["name"]]
        assert set(event["args"]) == {value}, event
        key = (event["name"], event["pid"], event.get("tid"))
        assert key not in self.names, f"named twice: {event}"
        self.names[key] = event["args"][value]

    def known(self, event):
        assert ("process_name", event["pid"], None) in self.names, f"no name for the process of {event}"
        assert "tid" not in event or ("thread_name", event["pid"], event["tid"]) in self.names, event

    def advance(self, track, ts):
        at = in_ps(ts)
        assert at >= self.now.get(track, 0), f"{track} goes back from {self.now[track]} to {at}"
        self.now[track] = at
        return at

    def phase_B(self, event):
        self.keys(event)
        self.known(event)
        thread = (event["pid"], event["tid"])
        assert not self.open.get(thread), f"{event} begins inside {self.open[thread]}"
        self.open[thread] = [(self.advance(thread, event["ts"]), event)]

    def phase_E(self, event):
        self.keys(event)
        thread = (event["pid"], event["tid"])
        begin, of = self.open[thread].pop()
        assert event["name"] == of["name"], f"{event} ends {of}"
        self.threads.setdefault(thread, []).append(
            (begin, self.advance(thread, event["ts"]), of["name"], of["cat"], of["args"]))

    def phase_C(self, event):
        self.keys(event)
        self.known(event)
        assert event["args"] and all(isinstance(value, (int, Decimal)) and value >= 0
                                     for value in event["args"].values()), event
        counter = (event["pid"], event["name"])
        course = self.counters.setdefault(counter, [])
        assert not course or set(course[0][1]) == set(event["args"]), event
        course.append((self.advance(counter, event["ts"]), event["args"]))

    def process(self, pid):
        return self.names["process_name", pid, None]

    def thread(self, pid, name):
        """The slices of a process's thread of this name; none where it has none."""
        tids = [tid for (kind, process, tid), told in self.names.items()
                if kind == "thread_name" and process == pid and told == name]
        assert len(tids) <= 1, tids
        return self.threads.get((pid, tids[0]), []) if tids else []

    def processes(self):
        return sorted(pid for kind, pid, _ in self.names if kind == "process_name")
