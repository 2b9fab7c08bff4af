"""The examples of docs/extending.md, exactly as printed, in a copy of the sources: they apply, keep the rules of the house,
build, and print what the page says. Those that edit a header, of which half of the sources know, are built by
`extending.py all` alone.

The line before each block of the page says what it is: a path alone and a colon a new file, `<!-- patch -->` a patch of
existing ones, `<!-- run -->` a command after `$ ` and what it prints. `python3 extending.py --write` puts what the commands
print today, and what the examples cost, into the page."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])
PAGE = ROOT / "docs" / "extending.md"
KINDS = ["topology", "collective algorithm", "transport", "pipeline schedule", "part", "strategy key", "catalog entry", "column",
         "verb"]
# What the copy is configured with: as the build under test is, so that the compiler's cache knows what no example changes.
SETTINGS = ["CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS", "MANYWORLDS_WERROR", "MANYWORLDS_SANITIZE", "CCACHE",
            "CHART_JS", "MPI_CXX_COMPILER"]
COSTS = re.compile(r"(?<=<!-- costs -->\n).*?(?=<!-- /costs -->)", re.DOTALL)


class PageError(Exception):
    """What is wrong with the page."""


class Block(typing.NamedTuple):
    section: str
    kind: str  # file, patch or run
    path: str  # of a file; else ""
    text: str


def blocks_of(page):
    """The blocks of a page in their order. Every block has a mark and every mark a block."""
    blocks, section, mark = [], "", None
    lines = enumerate(page.splitlines(), 1)
    for number, line in lines:
        if heading := re.fullmatch(r"## (.*)", line):
            section = heading.group(1)
        is_block = line.startswith("```")
        if is_block != (mark is not None):
            raise PageError(f"line {number}: " + ("a block without a mark" if is_block else "a mark without a block"))
        if is_block:
            text = []
            for _, inside in lines:
                if inside == "```":
                    break
                text.append(inside + "\n")
            else:
                raise PageError(f"line {number}: a block without an end")
            blocks.append(Block(section, mark["kind"] or "file", mark["path"] or "", "".join(text)))
        mark = re.fullmatch(r"<!-- (?P<kind>patch|run) -->|`(?P<path>[\w./-]+)`:", line)
    if mark is not None:
        raise PageError("the last mark has no block")
    return blocks


def apply(block, tree):
    """Writes the file, or applies the patch, of a block."""
    if block.kind == "file":
        path = tree / block.path
        if path.exists():
            raise PageError(f"{block.section}: {block.path} exists")
        path.write_text(block.text)
    elif block.kind == "patch":
        # The tree is no repository, and must not be taken for a part of one around it.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
        done = subprocess.run(["git", "apply", "--whitespace=error-all", "-"], cwd=tree, env=environment, input=block.text,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise PageError(f"{block.section}: this patch does not apply:\n{block.text}{done.stderr}")


def command_and_output(block):
    """A command, over several lines where these end in a backslash, and what it is to print."""
    found = re.match(r"\$ ((?:.*\\\n)*.*\n)", block.text)
    if not found:
        raise PageError(f"{block.section}: a command begins with `$ `")
    return found.group(1), block.text[found.end():]


def printed(command, tree, build):
    environment = {**os.environ, "PATH": f"{build}:/usr/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{tree}/cache"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=tree, env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=1200)
    if done.returncode != 0:
        raise PageError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def costs_of(blocks):
    """The table of what each example costs."""
    rows = ["| example | new files | their lines | files edited | lines added or changed |", "|---|---|---|---|---|"]
    for section in dict.fromkeys(block.section for block in blocks):
        files = [block for block in blocks if block.section == section and block.kind == "file"]
        patches = "".join(block.text for block in blocks if block.section == section and block.kind == "patch")
        new = ", ".join(f"`{block.path}`" for block in files) or "–"
        edited = re.findall(r"^\+\+\+ b/(.*)$", patches, re.MULTILINE)
        changed = len(re.findall(r"^\+(?!\+\+ b/)", patches, re.MULTILINE))
        rows.append(f"| {section.lower()} | {new} | {sum(block.text.count(chr(10)) for block in files)} | {len(edited)} | {changed} |")
    return "\n".join(rows) + "\n"


def edits_header(section, blocks):
    return any(block.section == section and re.search(r"^\+\+\+ b/.*\.hpp$", block.text, re.MULTILINE) for block in blocks)


def chosen_blocks(every):
    """The blocks of all examples, or of those that edit no header."""
    blocks = blocks_of(PAGE.read_text())
    return [block for block in blocks if every or not edits_header(block.section, blocks)]


def copy_sources(to):
    """Every file of the working tree that git knows or would know."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def apply_examples(tree, blocks):
    """Makes `tree` a copy of the sources with these blocks."""
    copy_sources(tree)
    for block in blocks:
        apply(block, tree)


def build_examples(tree, blocks):
    """Builds the program with these blocks in `tree`, and returns its build folder."""
    apply_examples(tree, blocks)
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE))
    build = tree / "build" / BUILD.name  # as deep as the other, since the compiler's cache sees relative paths
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    for words in (["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DMANYWORLDS_TESTS=OFF",
                   *(f"-D{name}={cache[name]}" for name in SETTINGS if cache.get(name))],
                  ["cmake", "--build", build, "--parallel", os.cpu_count()]):
        done = subprocess.run([*map(str, words)], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout[-8000:] + done.stderr[-4000:])
    return build


class Page(unittest.TestCase):
    def setUp(self):
        self.blocks = blocks_of(PAGE.read_text())

    def test_every_kind_of_part_has_an_example_and_a_command(self):
        sections = list(dict.fromkeys(block.section for block in self.blocks))
        self.assertEqual(len(sections), len(KINDS))
        for section, kind in zip(sections, KINDS):
            self.assertIn(kind, section)
            self.assertEqual([block.kind for block in self.blocks if block.section == section].count("run"), 1, section)

    def test_the_costs_are_those_of_the_blocks(self):
        self.assertEqual(COSTS.findall(PAGE.read_text()), [costs_of(self.blocks)])


class Reading(unittest.TestCase):
    """Controls: what is wrong with a page is found."""

    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-page-")).resolve()
        self.addCleanup(shutil.rmtree, self.tree)
        (self.tree / "list.cpp").write_text("// A list.\nentry(a)\nentry(c)\n")

    def follow(self, page):
        for block in blocks_of(page):
            apply(block, self.tree)
            if block.kind == "run":
                command, output = command_and_output(block)
                if printed(command, self.tree, self.tree) != output:
                    raise PageError(f"{command} prints otherwise")

    patch = "## A list\n<!-- patch -->\n```diff\n--- a/list.cpp\n+++ b/list.cpp\n@@ -2,2 +2,3 @@\n entry(a)\n+entry(b)\n entry(c)\n```\n"
    file = "`new.cpp`:\n```cpp\nint x;\n```\n"
    command = "<!-- run -->\n```\n$ cat list.cpp \\\n    new.cpp | tail -n 4\nentry(a)\nentry(b)\nentry(c)\nint x;\n```\n"

    def test_a_page_is_followed(self):
        self.follow(self.patch + "Text.\n\n" + self.file + self.command)
        self.assertEqual(costs_of(blocks_of(self.patch + self.file)).splitlines()[2], "| a list | `new.cpp` | 1 | 1 | 1 |")

    def test_a_patch_finds_its_place_when_lines_before_it_come_or_go(self):
        (self.tree / "list.cpp").write_text("// A list.\n// Of letters.\n\nentry(a)\nentry(c)\n")
        self.follow(self.patch + self.file + self.command)

    def test_what_is_wrong_is_found(self):
        for page, message in [
                (self.patch.replace(" entry(c)", " entry(d)"), r"A list: this patch does not apply:\n.*list\.cpp"),
                (self.patch.replace("+entry(b)", "+entry(b) "), "does not apply:\n(.|\n)*whitespace"),
                (self.patch + self.patch, "does not apply"),
                (self.patch.replace("list.cpp", "lost.cpp"), "lost.cpp"),
                (self.file.replace("new.cpp", "list.cpp"), "list.cpp exists"),
                ("```cpp\nint x;\n```\n", "line 1: a block without a mark"),
                ("<!-- run -->\n\n```\n$ true\n```\n", "line 2: a mark without a block"),
                ("<!-- run -->\n", "the last mark"), (self.file.removesuffix("```\n"), "without an end"),
                ("<!-- run -->\n```\ntrue\n```\n", "begins with"), ("<!-- run -->\n```\n$ false\n```\n", "false\n: exit 1"),
                ("<!-- run -->\n```\n$ false | true\n```\n", "exit 1"), ("<!-- run -->\n```\n$ echo 1\n2\n```\n", "otherwise")]:
            (self.tree / "list.cpp").write_text("// A list.\nentry(a)\nentry(c)\n")
            with self.assertRaisesRegex(PageError, message):
                self.follow(page)


class Examples(unittest.TestCase):
    every = False

    @classmethod
    def setUpClass(cls):
        cls.tree = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-extending-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.tree, ignore_errors=True)
        cls.blocks = chosen_blocks(cls.every)
        cls.build = build_examples(cls.tree, cls.blocks)

    def test_every_command_prints_what_the_page_says(self):
        self.assertGreater(len(self.blocks), 10)
        for block in self.blocks:
            if block.kind == "run":
                command, output = command_and_output(block)
                with self.subTest(command=command):
                    self.assertEqual(printed(command, self.tree, self.build), output)

    def test_all_examples_apply_and_keep_the_rules_of_the_house(self):
        with tempfile.TemporaryDirectory(prefix="manyworlds-extending-") as directory:
            tree = pathlib.Path(directory).resolve()
            apply_examples(tree, chosen_blocks(every=True))
            self.keeps_rules(tree, [["architecture"], ["formatting"]])

    def test_what_is_built_is_documented(self):
        self.keeps_rules(self.tree, [["readme", "Readme.test_every_verb_that_exists_is_named"]])

    def keeps_rules(self, tree, scripts):
        for words in scripts:
            script = tree / "tests" / "end_to_end" / f"{words[0]}.py"
            if script.exists():
                environment = {**os.environ, "MANYWORLDS_SOURCE_DIR": str(tree), "MANYWORLDS_BUILD_DIR": str(self.build)}
                done = subprocess.run([sys.executable, str(script), *words[1:]], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


def write_page():
    with tempfile.TemporaryDirectory(prefix="manyworlds-extending-") as directory:
        tree = pathlib.Path(directory).resolve()
        build = build_examples(tree, chosen_blocks(every=True))
        page = PAGE.read_text()
        for block in blocks_of(page):
            if block.kind == "run":
                command, _ = command_and_output(block)
                page = page.replace(f"```\n{block.text}```", f"```\n$ {command}{printed(command, tree, build)}```")
        PAGE.write_text(COSTS.sub(costs_of(blocks_of(page)).replace("\\", r"\\"), page))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_page()
    else:
        Examples.every = sys.argv[1:2] == ["all"]
        unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1 + Examples.every:]])
