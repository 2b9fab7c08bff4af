"""The rules of the house that a compiler does not enforce: who may include what, no mutable statics, no libm in core,
short subjects of commits.

Every rule is a function from sources or object files to a list of faults; a control shows that it finds one."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["MANYWORLDS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["MANYWORLDS_BUILD_DIR"])
COMPILER = os.environ["MANYWORLDS_COMPILER"]

FOLDERS = ["core", "topologies", "experiments", "io", "farm"]  # each may include itself and what stands to its left
AT_HOME = {  # external headers, and the rooms that alone may see them
    r"mpi\.h": ("farm/protocol", "farm/system"),
    r"(boost/|asio)": ("farm/http", "farm/serve", "farm/worker"),
    r"cxxopts": ("farm/cli/parsing", "farm/cli/options"),
    r"(hdf5|H5)": ("io/results",),
    r"sqlite3": ("experiments/nsys",),
    r"yaml-cpp": ("experiments/tree",),
    r"toml\+\+": ("experiments/tree",),
    r"mpParser": ("experiments/tree",),
    r"(pybind11|Python\.h)": ("farm/python/module",),
}
NOT_IN_CORE = r"(fstream|iostream|filesystem|cstdio|stdio\.h|chrono|ctime|time\.h|thread|mutex|random|unistd\.h|sys/)"
NOT_IN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "world"}  # of files and folders
MOST_LINES = 500
MODULE = "farm/python/module"  # the binding: no room, as it is compiled only where Python is wanted
STATEFUL = {  # variables that may be written: the state of a process in which a library of C functions is loaded
    "manyworlds::experiments::capture::(anonymous namespace)::opened()::session",
    "manyworlds::experiments::capture::session()::only",
    "manyworlds::experiments::capture::thread_state()::state",
}
MOST_MODULES = 15  # of a room; a header and its source are one
ONE_FILE_EACH = {"core/collective/algorithms", "core/workload/schedule"}  # rooms of many alike components
LISTS = {  # folders whose files define entries of a list: the list, and what the functions that define entries end in
    "core/collective/algorithms": ("core/collective/dag/algorithm.hpp", "algorithm"),
    "core/network/transports": ("core/network/transports/registry.cpp", "transport"),
    "core/workload/schedule": ("core/workload/schedule/registry.cpp", "schedule"),
    "farm/verbs": ("farm/verbs/entry/registry.cpp", "command"),
}
# Words that stood where the field has its own; docs/glossary.md has what is ours.
RETIRED = re.compile(r"\b(" + "|".join((
    "Laboratory", "Likeness", r"[Pp]layers?", "player_of", "[Ss]quads?", "NetworkSide", "ComposedSide", "AnalyticSide",
    "Gathering", "Meeting", "HeldExits", "Repertoire", "Outline", "LongestWays", "Arrangement", "Undivided", "undivide",
    "Repeatable", "individuals?", "Managed", r"Sliced\w+", "Turned", "least_turn", "stand_in", "Tape", "Issuer", "Strand",
    "Folding", "Awaited", "Keeping", "run_eagerly", "Standing", "Telling", "Ledger", "Broken", "standstill", "quiet_since",
    "pass_over", "take_back", "write_aside", "reckon_with", "lend_calibration", "thaw", "freeze", r"k(Most|Least)\w+",
    "made")) + r")\b")
LONGEST_SUBJECT = 72
LAST_LONG_SUBJECT = "ef4b3e5669adab62521dfd8f45077c7be16f42df"  # commits behind it keep the rule
# Of libm, core may call what IEEE 754 rounds exactly.
INEXACT_LIBM = {name + suffix for suffix in ("", "f", "l") for name in (
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp10 exp2 expm1 hypot lgamma log log10 log1p "
    "log2 pow sin sincos sinh tan tanh tgamma").split()}


def sources(folder):
    return {path: path.read_text() for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".cpp", ".hpp")}


def generated(folder):
    """What the build writes itself, such as the catalog's data."""
    return [path.read_text() for path in sorted((BUILD / folder).glob("*.cpp"))]


def included(text):
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text, re.MULTILINE)


def declared_rooms():
    """{room: rooms it says it needs}, in the order of declaration."""
    rooms = {}
    for folder in FOLDERS:
        for room, words in re.findall(r"^manyworlds_room\((\S+)([^)]*)\)$", (ROOT / folder / "CMakeLists.txt").read_text(),
                                      re.MULTILINE):
            needs = words.split(" USES ")[0].removeprefix(" NEEDS")
            rooms[room] = needs.split() if " NEEDS" in words else []
    return rooms


def order_faults(rooms):
    """Needs of a room that are not declared before it: without these there is no circle."""
    known, faults = set(), []
    for room, needs in rooms.items():
        faults += [f"{room} needs {need}, which does not stand before it" for need in needs if need not in known]
        known.add(room)
    return faults


def may_see(rooms):
    """{room: every room whose headers it may include}."""
    seen = {}
    for room, needs in rooms.items():
        seen[room] = {room}.union(*(seen.get(need, {need}) for need in needs))
    return seen


def room_faults(seen, room, text):
    """Includes of rooms that this one does not say it needs."""
    return [f"{room} does not need {header}" for header in included(text)
            if header.split("/")[0] in FOLDERS and header.rsplit("/", 1)[0] not in seen[room]]


def size_faults(room, names):
    modules = {name.rsplit(".", 1)[0] for name in names if name.endswith((".cpp", ".hpp"))}
    faults = [f"{room} has {len(modules)} modules"] if len(modules) > MOST_MODULES and room not in ONE_FILE_EACH else []
    return faults if "README.md" in names else [*faults, f"{room} does not say what it is"]


def list_faults(text, listed, ending):
    """Entries that `text` defines and the list has not, or the list has and nothing defines: these do not link."""
    defined = set(re.findall(rf"^\w+ (\w+)_{ending}\(\) {{", text, re.MULTILINE))
    return sorted(defined ^ set(re.findall(r"^\s+entry\((\w+)\)", listed, re.MULTILINE)))


def include_faults(room, text):
    folder, faults = room.split("/")[0], []
    for header in included(text):
        first = header.split("/")[0]
        if first in FOLDERS and FOLDERS.index(first) > FOLDERS.index(folder):
            faults.append(f"{folder} may not know {header}")
        if ".." in header.split("/"):
            faults.append(f"{header} leaves the include path")
        for pattern, homes in AT_HOME.items():
            if room not in homes and re.match(pattern, header):
                faults.append(f"{header} belongs to {' and '.join(homes)}")
        if folder in ("core", "topologies") and re.fullmatch(NOT_IN_CORE + r".*", header):
            faults.append(f"{header}: no files, clocks, threads or unseeded chance in {folder}/")
    return faults


def without_comments(text):
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.DOTALL)  # compiled files may hold what looks like them
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.MULTILINE)


def retired_words(text):
    """Retired words among the identifiers of `text`."""
    code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', without_comments(text))
    return sorted(set(match.group() for match in RETIRED.finditer(code)))


@functools.lru_cache(maxsize=1)
def statements(text):
    """The statements of a source, each on one line and without labels."""
    return [re.sub(r"^(?:\w+:\s)+", "", " ".join(statement.split()))
            for statement in re.split(r"[;{}]", without_comments(text))]


def is_constant(name, text):
    """Whether every declaration of a variable `name` with static storage in `text` is const, and there is one."""
    found = False
    for statement in statements(text):
        if name not in statement or not re.search(rf"[\w>&*\]]\s*\b{name}\b\s*(?:[=(\[]|$)", statement):
            continue
        storage = re.match(r"(?:(?:static|inline|extern|thread_local|constinit)\s+)*", statement).group()
        constant = re.match(r"const(expr)?\b", statement[len(storage):])
        pointer = re.search(rf"\*\s*{name}\b", statement) and "constexpr" not in statement
        if constant and not pointer:
            found = True
        elif storage:
            return False
    return found


def writable_symbols(objects):
    """(demangled name, section) of every variable that the loader puts into writable memory."""
    listing = subprocess.run(["objdump", "-t", *map(str, objects)], check=True, capture_output=True, text=True).stdout
    symbols = re.findall(r"^[0-9a-f]+ .{7} (\.data\S*|\.bss\S*|\.tdata\S*|\.tbss\S*|\*COM\*)\t[0-9a-f]+\s+(?:\.hidden )?(\S+)$",
                         listing, re.MULTILINE)
    symbols = sorted({(name, section) for section, name in symbols if not section.startswith(".data.rel.ro")})
    names = subprocess.run(["c++filt"], input="\n".join(name for name, _ in symbols), check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return list(zip(names, (section for _, section in symbols)))


def static_faults(objects, text):
    """Writable variables of ours that `text`, the sources of the objects, does not declare const."""
    faults = []
    for name, section in writable_symbols(objects):
        foreign = re.match(r"(std|boost|fmt|YAML|nlohmann|mup|__gnu_cxx|cxxopts)::|guard variable for |DW\.ref\.|__|\.|_ZGR|reference temporary",
                           name)
        own = re.sub(r"\[abi:\w+\]", "", re.sub(r"(\.\d+)+$", "", name)).split("::")[-1]
        if section == name or foreign or re.sub(r"\[abi:\w+\]", "", name) in STATEFUL or (re.fullmatch(r"\w+", own) and is_constant(own, text)):
            continue
        faults.append(f"{name} ({section})")
    return faults


def inexact_calls(objects):
    listing = subprocess.run(["nm", "-u", *map(str, objects)], check=True, capture_output=True, text=True).stdout
    return sorted(INEXACT_LIBM & {line.split()[-1].split("@")[0] for line in listing.splitlines() if line.strip()})


def compiled(directory, code):
    source = pathlib.Path(directory) / "control.cpp"
    source.write_text(code)
    subprocess.run([COMPILER, "-std=c++20", "-O2", "-c", str(source), "-o", str(source.with_suffix(".o"))], check=True)
    return [source.with_suffix(".o")]


def subjects(repository):
    """[(hash, subject)] of the commits since the rule began, as far as they are there, and what there is not."""
    def git(*words):
        return subprocess.run(["git", "-c", "safe.directory=*", "-C", str(repository), *words], capture_output=True,
                              encoding="utf-8")
    try:
        top = git("rev-parse", "--show-toplevel").stdout.strip()
    except FileNotFoundError:
        return [], "git is not installed: no subject of a commit was looked at"
    if not top or pathlib.Path(top).resolve() != repository.resolve():
        return [], f"{repository} is no checkout of git: no subject of a commit was looked at"
    behind = git("merge-base", "--is-ancestor", LAST_LONG_SUBJECT, "HEAD").returncode == 0
    log = git("log", "--no-merges", "--format=%h %s", f"{LAST_LONG_SUBJECT}..HEAD" if behind else "HEAD")
    if log.returncode != 0:
        raise AssertionError(log.stderr)
    found = [tuple(line.split(" ", 1)) for line in log.stdout.splitlines()]
    return found, "" if behind else f"{repository} lacks commit {LAST_LONG_SUBJECT[:7]}: {len(found)} commits looked at"


def long_subjects(commits):
    """A merge that a forge made, alone in a shallow clone, reads as a commit of its own."""
    return [f"{commit} has {len(subject)} characters: {subject}" for commit, subject in commits
            if len(subject) > LONGEST_SUBJECT and not re.fullmatch(r"Merge [0-9a-f]{40} into [0-9a-f]{40}", subject)]


def room_of(path):
    return str(path.parent.relative_to(ROOT))


class Includes(unittest.TestCase):
    def test_each_folder_includes_only_itself_and_what_stands_to_its_left(self):
        for folder in FOLDERS:
            for path, text in sources(folder).items():
                self.assertEqual(include_faults(room_of(path), text), [], path)

    def test_a_wrong_include_is_found(self):
        wrong = [("core/base", '#include "io/log/store.hpp"'), ("io/log", "#include <mpi.h>"),
                 ("core/base", "# include <hdf5.h>"), ("experiments/sweep", "#include <boost/asio/io_context.hpp>"),
                 ("io/log", "#include <cxxopts.hpp>"), ("farm/run", "#include <mpi.h>"), ("farm/run", "#include <H5public.h>"),
                 ("core/base", '#include "../farm/protocol/job.hpp"'), ("core/base", "#include <chrono>"),
                 ("topologies/parts", "#include <fstream>")]
        for room, line in wrong:
            self.assertEqual(len(include_faults(room, "// top\n" + line + "\n")), 1, line)
        for room, line in [("farm/protocol", "#include <mpi.h>"), ("io/results", "#include <hdf5.h>"),
                           ("io/log", '#include "core/base/units.hpp"')]:
            self.assertEqual(include_faults(room, line), [])

    def test_every_folder_was_looked_at(self):
        for folder in FOLDERS:
            self.assertGreater(len(sources(folder)), 2, folder)


class Rooms(unittest.TestCase):
    def setUp(self):
        self.rooms = declared_rooms()

    def test_every_folder_of_sources_is_a_room(self):
        folders = {room_of(path) for folder in FOLDERS for path in sources(folder)}
        self.assertEqual(folders - {"farm", MODULE}, set(self.rooms))  # farm/ holds main.cpp alone
        self.assertEqual([path.name for path in (ROOT / MODULE).iterdir()], ["module.cpp"])
        self.assertEqual([path.name for path in (ROOT / "farm").glob("*.[ch]pp")], ["main.cpp"])

    def test_rooms_stand_in_an_order(self):
        self.assertEqual(order_faults(self.rooms), [])
        self.assertEqual(len(order_faults({"core/a": ["core/b"], "core/b": ["core/a"]})), 1)

    def test_a_room_includes_only_what_it_says_it_needs(self):
        seen = may_see(self.rooms)
        for folder in FOLDERS:
            for path, text in sources(folder).items():
                if room_of(path) in seen:
                    self.assertEqual(room_faults(seen, room_of(path), text), [], path)
        self.assertEqual(len(room_faults(seen, "core/compute", '#include "core/memory/footprint.hpp"')), 1)
        self.assertEqual(room_faults(seen, "core/memory", '#include "core/compute/gpu.hpp"'), [])

    def test_a_room_is_small_and_says_what_it_is(self):
        for room in self.rooms:
            self.assertEqual(size_faults(room, [path.name for path in (ROOT / room).iterdir()]), [])
        crowd = [f"{letter}.cpp" for letter in "abcdefghijklmnop"]
        self.assertEqual(len(size_faults("core/crowd", crowd)), 2)
        self.assertEqual(size_faults("core/pair", ["a.cpp", "a.hpp", "README.md"]), [])

    def test_every_algorithm_transport_schedule_and_verb_stands_in_its_list(self):
        for room, (listed, ending) in LISTS.items():
            text = "".join(sources(room).values())
            self.assertEqual(list_faults(text, (ROOT / listed).read_text(), ending), [], room)
            self.assertGreater(len(re.findall(rf"_{ending}\(\) {{", text)), 5, room)
        control = "#define LIST(entry) \\\n  entry(ring) \\\n  entry(tree)\n"
        self.assertEqual(list_faults("Info ring_kind() {\nInfo star_kind() {\n", control, "kind"), ["star", "tree"])


class Language(unittest.TestCase):
    def test_no_identifier_is_a_retired_word(self):
        for folder in [*FOLDERS, "tests"]:
            for path, text in sources(folder).items():
                self.assertEqual(retired_words(text), [], path)

    def test_a_retired_word_is_found_in_code_alone(self):
        self.assertEqual(retired_words('int f() { Ledger made; return kMostTries; }'), ["Ledger", "kMostTries", "made"])
        self.assertEqual(retired_words('// made by a Ledger\nauto text = "standstill";'), [])


class Statics(unittest.TestCase):
    def test_no_folder_has_a_mutable_static(self):
        for index, folder in enumerate(FOLDERS):
            libraries = sorted((BUILD / folder).glob("*.a"))
            self.assertGreater(len(libraries), 1, folder)
            text = "\n;\n".join(text for known in FOLDERS[:index + 1]
                                 for text in [*sources(known).values(), *generated(known)])
            self.assertEqual(static_faults(libraries, text), [], folder)

    def test_a_mutable_static_is_found_and_a_constant_one_is_not(self):
        mutable = {
            "local": "int f() { static int counter; return ++counter; }",
            "set": "int f() { static int counter = 7; return counter += 2; }",
            "file": "namespace { long total = 3; } long f(long x) { return total += x; }",
            "global": "namespace a { int total; }",
            "member": "struct S { static int total; int f(); }; int S::total = 1; int S::f() { return total++; }",
            "inline": "inline int total = 1; int f() { return total++; }",
            "thread": "int f() { thread_local int total = 0; return ++total; }",
            "pointer": "static const char* name = \"\"; void f(const char* to) { name = to; } const char* g() { return name; }",
            "vector": "#include <vector>\nstd::vector<const int*>& f() { static std::vector<const int*> all; return all; }",
            "hidden": "int g() { const int total = 1; return total; } int f() { static int total; return ++total; }",
        }
        constant = {
            "vector": "#include <vector>\nint g();\nconst std::vector<int>& f() { static const std::vector<int> all{g(), 2}; return all; }",
            "table": "struct T { int (*f)(); }; int g(); extern const T table[2]; const T table[2] = {{g}, {g}};",
            "lines": "#include <map>\n#include <string>\nint g();\nint f(int x) {\n  static const std::map<int,\n      std::string> all = {{1, \"a\"}};\n"
                     "  return all.at(x).size() + g(); }",
        }
        with tempfile.TemporaryDirectory() as directory:
            for label, code in mutable.items():
                self.assertEqual(len(static_faults(compiled(directory, code), code)), 1, label)
            for label, code in constant.items():
                self.assertEqual(static_faults(compiled(directory, code), code), [], label)


class Arithmetic(unittest.TestCase):
    def test_core_calls_no_libm_function_whose_last_bit_differs_between_machines(self):
        libraries = [path for folder in ("core", "topologies") for path in (BUILD / folder).glob("*.a")]
        self.assertGreater(len(libraries), 20)
        self.assertEqual(inexact_calls(libraries), [])

    def test_such_a_call_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            code = "#include <cmath>\ndouble f(double x) { return std::exp(x) + std::pow(x, 1.5) + std::sqrt(x); }"
            self.assertEqual(inexact_calls(compiled(directory, code)), ["exp", "pow"])


class Commits(unittest.TestCase):
    def test_no_subject_is_longer_than_72_characters(self):
        commits, lacking = subjects(ROOT)
        if lacking:
            print(lacking, file=sys.stderr)
        self.assertEqual(long_subjects(commits), [])

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_a_longer_one_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            self.assertEqual(subjects(folder)[0], [])
            self.assertIn("is no checkout of git", subjects(folder)[1])
            git = ["git", "-C", directory, "-c", "user.name=Somebody", "-c", "user.email=somebody@example.org",
                   "-c", "commit.gpgsign=false"]
            subprocess.run([*git, "init", "-q"], check=True)
            for subject in ("\u00e9" * 72, "a" * 73, f"Merge {'0' * 40} into {'1' * 40}"):
                subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject, "-m", "b" * 100], check=True)
            commits, lacking = subjects(folder)
            self.assertIn("3 commits looked at", lacking)
            self.assertRegex("\n".join(long_subjects(commits)), rf"\A[0-9a-f]+ has 73 characters: {'a' * 73}\Z")


class Files(unittest.TestCase):
    def every_file(self):
        folders = FOLDERS + ["tests", "script", "cmake", "slurm"]
        files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))
                 if path.is_file() and "__pycache__" not in path.parts]
        self.assertGreater(len(files), 50)
        return files

    def test_no_file_of_code_is_longer_than_500_lines(self):
        code = [path for path in self.every_file() if path.suffix in (".cpp", ".hpp", ".py", ".cmake", "")]
        self.assertEqual([f"{path}: {lines}" for path in code
                          if (lines := len(path.read_text().splitlines())) > MOST_LINES], [])

    def test_every_source_says_at_its_top_what_it_is(self):
        """The .cpp of a header that says it need not say it again."""
        self.assertEqual([str(path) for path in self.every_file() if path.suffix in (".cpp", ".hpp")
                          and not re.match(r"// \S", path.read_text())
                          and not (path.suffix == ".cpp" and path.with_suffix(".hpp").exists())], [])

    def test_names_say_what_a_file_is_for(self):
        """Jobs that others published keep the names by which they source one another."""
        published = ROOT / "tests" / "experiments" / "jobs"
        self.assertEqual([str(path) for path in self.every_file() if published not in path.parents
                          and NOT_IN_NAMES & set(re.split(r"[_.\-/]", str(path.relative_to(ROOT))))], [])
        self.assertEqual([str(path) for path in self.every_file() if path.suffix in (".cpp", ".hpp")
                          and not re.fullmatch(r"[a-z0-9_]+\.[ch]pp", path.name)], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
