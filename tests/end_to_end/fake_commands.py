"""Commands on PATH in place of real ones, and what was asked of them: for tests of what scripts and programs start."""

import pathlib


def fake_command(folder, name, body, calls):
    """Makes `folder`/`name` run `body` in bash; every call of it is a line of the file `calls`."""
    path = pathlib.Path(folder) / name
    path.write_text(f'#!/bin/bash\necho "{name} $*" >>"{calls}"\n{body}\n')
    path.chmod(0o755)
