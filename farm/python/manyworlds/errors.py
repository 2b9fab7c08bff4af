"""What goes wrong, as exceptions: the user's mistakes know the file, the line and the key."""

import re


class ManyworldsError(Exception):
    """Anything that Manyworlds refuses or that fails in it."""


class InputError(ManyworldsError, ValueError):
    """A mistake in what was given. `file`, `line` and `key` are None where the message names none."""

    def __init__(self, text, given=None):
        super().__init__(text)
        located = re.match(r"(?P<file>[^\n]*?):(?P<line>\d+): (?P<message>.*)", text, re.DOTALL)
        if located is None and given is not None and text.startswith(f"{given}: "):
            located = {"file": given, "line": None, "message": text[len(given) + 2:]}
        self.file = located["file"] if located else None
        self.line = int(located["line"]) if located and located["line"] else None
        self.message = located["message"] if located else text
        key = re.search(r"'((?:[a-z_]\w*\.)+\w+)'", text) or re.match(r"'?([a-z_][\w.]*)'?(?::| must| takes|, )", self.message)
        key = key or re.search(r"(?:unknown key|key) '([\w.]+)'", text) or re.match(r"--set ([\w.]+)=", text)
        self.key = key[1] if key else None


class Failed(ManyworldsError):
    """A simulation or a run that did not come to an end; `run` has what there is, if there is anything."""

    def __init__(self, text, run=None):
        super().__init__(text)
        self.run = run
