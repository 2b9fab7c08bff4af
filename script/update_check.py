#!/usr/bin/python3
"""Puts what `manyworlds check` prints of the real logs in tests/experiments/logs into docs/check.md.

    script/update_check.py [--program build/release/manyworlds] [--check]

A block of that page that begins with `$ manyworlds check` has the output of these commands. With --check nothing is written; it ends
in 1 where the page is not what this build prints.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/check.md"
LOGS = ROOT / "tests/experiments/logs"


def printed(program, command):
    words = command.split()[1:]
    done = subprocess.run([program, *words, "--learned", "none"], check=True, text=True, stdout=subprocess.PIPE, cwd=LOGS)
    return f"$ {command}\n{done.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/release/manyworlds", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    program = arguments.program.resolve()

    def block(found):
        commands = re.findall(r"^\$ (manyworlds check .*)$", found[1], re.MULTILINE)
        return "```\n" + "".join(printed(program, command) for command in commands) + "```\n"

    text = PAGE.read_text()
    new = re.sub(r"^```\n(\$ manyworlds check .*?)^```\n", block, text, flags=re.MULTILINE | re.DOTALL)
    if arguments.check:
        sys.exit(0 if new == text else f"{PAGE}: script/update_check.py writes it otherwise")
    PAGE.write_text(new)


if __name__ == "__main__":
    main()
