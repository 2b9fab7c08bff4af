#!/usr/bin/env python3
"""What a program's command line accepts, read from its sources without running them: every argument with how many values it
takes, their type and their choices, as JSON.

    script/read_argument_parser.py --repository NVIDIA/Megatron-LM --git DIRECTORY --commit COMMIT FILE.py... > parser.json

Read are the calls of add_argument() in the files named, and the fields of the dataclasses that these hand to
ArgumentGroupFactory (Megatron-LM @d98e8a6, megatron/training/argument_utils.py)."""

import argparse
import ast
import json
import re
import subprocess
import sys


class Sources:
    """The Python files of a commit."""

    def __init__(self, git, commit):
        self.git, self.commit = git, commit
        self.trees = {}

    def run(self, *words):
        return subprocess.run(["git", "-C", self.git, *words], check=True, capture_output=True, text=True).stdout

    def tree(self, path):
        if path not in self.trees:
            self.trees[path] = ast.parse(self.run("show", f"{self.commit}:{path}"))
        return self.trees[path]

    def find_class(self, name):
        """The definition of a class by its name, wherever it stands; None if nobody defines it."""
        found = subprocess.run(["git", "-C", self.git, "grep", "-lE", rf"^class {name}\b", self.commit, "--", "*.py"],
                               capture_output=True, text=True).stdout.split()
        for path in sorted((line.split(":", 1)[1] for line in found), key=lambda one: ("test" in one, len(one))):
            for node in self.tree(path).body:
                if isinstance(node, ast.ClassDef) and node.name == name:
                    return node
        return None


def literal(node, otherwise=None):
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return otherwise


def described(names, action, nargs, kind, choices):
    """An argument as the table has it."""
    if action in ("store_true", "store_false", "store_const", "count", "help", "version"):
        nargs, kind, choices = 0, None, None
    entry = {"values": 1 if nargs is None else nargs}
    if kind:
        entry["type"] = kind
    if choices:
        entry["choices"] = [str(one) for one in choices]
    return {name: entry for name in names if name.startswith("--")}


def called(node):
    """An argument of one call of add_argument()."""
    words = {one.arg: one.value for one in node.keywords}
    names = [name for name in (literal(one, "") for one in node.args) if isinstance(name, str)]
    action = literal(words["action"], ast.unparse(words["action"])) if "action" in words else None
    kind = ast.unparse(words["type"]) if "type" in words else None
    choices = literal(words["choices"]) if "choices" in words else None
    found = described(names, action, literal(words.get("nargs", ast.Constant(None))), kind, choices)
    if action and action.endswith("BooleanOptionalAction"):
        found = described(names + ["--no-" + one[2:] for one in names], "store_true", None, None, None)
    return found


class Fields:
    """The arguments that ArgumentGroupFactory makes of a dataclass."""

    def __init__(self, sources):
        self.sources = sources

    def of(self, name, excluded):
        node = self.sources.find_class(name)
        if node is None:
            raise SystemExit(f"nobody defines class {name}")
        found = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and self.sources.find_class(base.id) is not None:
                found.update(self.of(base.id, excluded))
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id not in excluded:
                found.update(self.argument(field))
        return found

    def argument(self, field):
        name, default, meta = field.target.id, field.value, {}
        if isinstance(default, ast.Call) and ast.unparse(default.func).split(".")[-1] == "field":
            words = {one.arg: one.value for one in default.keywords}
            if literal(words.get("init", ast.Constant(True))) is False:
                return {}
            if "metadata" in words:
                keys = {literal(key): value for key, value in zip(words["metadata"].keys, words["metadata"].values)}
                if "argparse_meta" in keys:
                    meta = {literal(key): value for key, value in zip(keys["argparse_meta"].keys, keys["argparse_meta"].values)}
            default = words.get("default")
        kind, nargs, choices = self.type_of(field.annotation)
        dashed = name.replace("_", "-")
        names, action = ["--" + dashed], None
        if kind == "bool":
            off = default is not None and literal(default) is False
            action = "store_true" if off else "store_false"
            if not off:
                names = ["--no-" + dashed, "--disable-" + dashed]
        if "arg_names" in meta:
            names = literal(meta["arg_names"])
        if "nargs" in meta:
            nargs = literal(meta["nargs"])
        if "type" in meta:
            kind = ast.unparse(meta["type"])
        if "choices" in meta:
            choices = literal(meta["choices"])
        return described(names, action, nargs, kind, choices)

    def type_of(self, node):
        """(type, nargs, choices) of an annotation."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.type_of(node.left)
        if isinstance(node, ast.Subscript):
            outer = ast.unparse(node.value).split(".")[-1]
            inner = node.slice
            if outer == "Optional":
                return self.type_of(inner)
            if outer == "Union":
                return self.type_of(inner.elts[0])
            if outer in ("list", "List"):
                kind, _, choices = self.type_of(inner)
                return kind, "+", choices
            if outer == "Literal":
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                choices = [literal(one) for one in parts]
                return type(choices[0]).__name__, None, choices
        name = ast.unparse(node)
        if re.fullmatch(r"\w+", name) and name not in ("str", "int", "float", "bool", "dict", "Any", "Callable"):
            known = self.sources.find_class(name)
            if known is not None and any("Enum" in ast.unparse(base) for base in known.bases):
                members = [one.targets[0].id for one in known.body if isinstance(one, ast.Assign)]
                return name, None, members
        return name, None, None


def constants(tree):
    """Lists of texts by the name that they are assigned to, where no two have the same."""
    return {node.targets[0].id: literal(node.value) for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and literal(node.value) is not None}


def arguments_in(sources, path):
    tree = sources.tree(path)
    lists, found, fields = constants(tree), {}, Fields(sources)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = ast.unparse(node.func).split(".")[-1]
        if function == "add_argument":
            found.update(called(node))
        elif function == "ArgumentGroupFactory":
            words = {one.arg: one.value for one in node.keywords}
            given = words.get("exclude")
            excluded = lists.get(given.id, []) if isinstance(given, ast.Name) else literal(given, []) if given else []
            found.update({key: value for key, value in fields.of(ast.unparse(node.args[0]), set(excluded)).items()
                          if key not in found})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", required=True, help="OWNER/NAME, for the origin")
    parser.add_argument("--git", required=True, help="a git directory that has the commit")
    parser.add_argument("--commit", required=True)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    sources = Sources(options.git, options.commit)
    found = {}
    for path in options.files:
        found.update(arguments_in(sources, path))
    lines = [f"  {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
    origin = f"{options.repository} @{options.commit[:8]}: {', '.join(options.files)}"
    print('{"origin": %s,\n "arguments": {\n%s\n}}' % (json.dumps(origin), ",\n".join(lines)))


if __name__ == "__main__":
    sys.exit(main())
