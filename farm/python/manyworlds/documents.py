"""Documents: a dict, the text of YAML, or a path, and settings in their place, as the program takes them."""

import contextlib
import json
import os
import pathlib
import tempfile

DICTIONARY = "spec"  # the name of a dict in messages


def setting(key, value):
    """One setting as `--set` takes it: JSON is YAML too."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"


def settings(given):
    """A dict of dotted keys, or words KEY=VALUE, as words."""
    if given is None:
        return []
    if isinstance(given, dict):
        return [setting(key, value) for key, value in given.items()]
    return [str(word) for word in ([given] if isinstance(given, str) else given)]


def is_path(spec):
    """Whether `spec` is the path of a document rather than one: of text, a single line that is no mapping."""
    return isinstance(spec, os.PathLike) or (isinstance(spec, str) and "\n" not in spec and ": " not in spec
                                             and not spec.lstrip().startswith("{"))


def read(spec):
    """(text, name in messages) of a spec."""
    if is_path(spec):
        path = os.fspath(spec)
        with open(path, encoding="utf-8") as file:
            return file.read(), path
    if isinstance(spec, str):
        return spec, DICTIONARY
    return json.dumps({"name": "experiment", **spec}, indent=1), DICTIONARY


@contextlib.contextmanager
def as_file(spec):
    """The path of a file that holds the spec: its own, or one in the current folder, where its relative paths begin."""
    if is_path(spec):
        yield os.fspath(spec)
        return
    text, _ = read(spec)
    folder = "." if os.access(".", os.W_OK) else None
    with tempfile.NamedTemporaryFile("w", prefix=".manyworlds-", suffix=".yaml", dir=folder, encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield str(pathlib.Path(file.name).resolve() if folder is None else pathlib.Path(file.name).name)
