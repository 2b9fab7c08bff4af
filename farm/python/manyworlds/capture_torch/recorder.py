"""What one rank did, in the order in which it was issued: the lines of docs/programs.md, before groups have their dimensions."""

import linecache
import os
import sys
import sysconfig

COMPUTE = "compute"
OURS = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")) + (
    "/usr/lib/python3/dist-packages", "<")


class Unsupported(Exception):
    """Something that a capture does not understand; the message names it."""


def script_line():
    """Where the script itself is now: (file, line, text of the line)."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(OURS) and not name.startswith(LIBRARIES):
            return name, frame.f_lineno, linecache.getline(name, frame.f_lineno).strip()
        frame = frame.f_back
    return "", 0, ""


class Recorder:
    """Lines of a rank. An event is recorded once; `boundaries` are the numbers of lines at which a step ended."""

    def __init__(self):
        self.lines = []
        self.boundaries = []
        self.notes = {}
        self.part = "forward"
        self.stream = COMPUTE
        self.live_bytes = self.peak_bytes = 0
        self.live_at = []  # bytes at each of the boundaries
        self._events = 0
        self._markers = False  # the script says itself where a step ends
        self._stepper = None  # the optimizer whose steps end a step otherwise

    def note(self, text, where=False):
        """Says once what was assumed, with the line of the script if `where`."""
        if where:
            name, line, code = script_line()
            text = f"{os.path.basename(name)}:{line}: {text}: {code}" if line else text
        self.notes.setdefault(text)

    def add(self, line, stream=None):
        self.lines.append({**line, "stream": stream or self.stream})

    def record_event(self, stream=None):
        """Returns the number of a new event, recorded on `stream`."""
        self._events += 1
        self.add({"record": self._events}, stream)
        return self._events

    def wait_event(self, event, stream=None):
        self.add({"wait": event}, stream)

    def allocate(self, size):
        if size > 0:
            self.lines.append({"allocate": size})
            self.live_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def free(self, size):
        if size > 0:
            self.lines.append({"free": size})
            self.live_bytes -= size

    def end_step(self):
        self.boundaries.append(len(self.lines))
        self.live_at.append(self.live_bytes)

    def marked(self):
        """The script says that a step ends here: from now on, and before, optimizers' steps do not."""
        if not self._markers:
            self._markers, self.boundaries, self.live_at = True, [], []
        self.end_step()

    def optimizer_stepped(self, optimizer):
        """A step ends with that of the optimizer which stepped first."""
        if self._stepper is None:
            self._stepper = id(optimizer)
        if not self._markers and self._stepper == id(optimizer):
            self.end_step()

    def steps(self, which):
        """The lines of the last step, or of all; waits for what was recorded before are left out."""
        if which == "all":
            begin, end, held = 0, len(self.lines), 0
        else:
            if not self.boundaries:
                raise Unsupported("the script ended no step: no optimizer's step() was called, nor manyworlds.capture_torch.step(); "
                                  "--steps all takes everything")
            end, number = self.boundaries[-1], len(self.boundaries) - 1
            begin, held = (self.boundaries[number - 1], self.live_at[number - 1]) if number else (0, 0)
            if not number:
                self.note("the script has one step alone: what it did before the step is in it, and optimizer states are made in it")
        return ([{"allocate": held}] if held else []) + resolved(self.lines[begin:end])


def resolved(lines):
    """Lines whose waits are those of programs, where an event is the last operation on its stream alone.

    CUDA's also has what the stream waits for before its next operation. What was recorded before these lines is not waited for, and
    nothing twice by one stream.
    """
    result = []
    holds = {}  # by event: the numbers of what it waits for
    recorded, pending, known = {}, {}, {}  # by stream: its last number if no operation followed, numbers waited for, and all so far
    count = 0
    for line in lines:
        stream = line.get("stream")
        if "record" in line:
            if stream not in recorded:
                recorded[stream] = count
                result.append({"record": count, "stream": stream})
                count += 1
            holds[line["record"]] = [recorded[stream], *pending.get(stream, ())]
        elif "wait" in line:
            for number in holds.get(line["wait"], ()):
                if number not in known.setdefault(stream, set()) and number != recorded.get(stream):
                    known[stream].add(number)
                    pending.setdefault(stream, []).append(number)
                    result.append({"wait": number, "stream": stream})
        else:
            if stream is not None:
                recorded.pop(stream, None)
                pending.pop(stream, None)
            result.append(line)
    numbers = {number: place for place, number in enumerate(sorted({line["wait"] for line in result if "wait" in line}))}
    kept = [line for line in result if "record" not in line or line["record"] in numbers]
    return [{key: numbers[value] if key in ("record", "wait") else value for key, value in line.items()} for line in kept]
