"""Parts of README.md and of pages that scripts write: between <!-- NAME --> and <!-- /NAME -->."""

import pathlib

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


def marks(name):
    return f"<!-- {name} -->\n", f"<!-- /{name} -->"


def part(readme, name):
    begin, end = marks(name)
    return readme.split(begin)[1].split(end)[0]


def with_part(readme, name, text):
    begin, end = marks(name)
    before, rest = readme.split(begin)
    return before + begin + text + end + rest.split(end)[1]
