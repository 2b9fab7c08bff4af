#!/usr/bin/env python3
"""Prints what torchtitan's own sources define, read as syntax (ast) and never run: every key of its job's file with the
default that it has, and the arguments of every flavor of its models.

    script/read_torchtitan.py keys CLONE v0.2.2 v0.2.1 … > tests/experiments/torchtitan/keys.tsv
    script/read_torchtitan.py flavors CLONE v0.2.2 > tests/experiments/torchtitan/flavors.tsv

CLONE is a clone of pytorch/torchtitan. A key of several versions has the default of the first one given."""

import ast
import subprocess
import sys

CONFIGS = ("torchtitan/config/job_config.py", "torchtitan/config_manager.py")
MODELS = ("llama3", "deepseek_v3", "qwen3", "gpt_oss", "llama4")


def source(clone, version, paths):
    for path in paths:
        found = subprocess.run(["git", "-C", clone, "show", f"{version}:{path}"], capture_output=True, text=True)
        if found.returncode == 0:
            return ast.parse(found.stdout)
    sys.exit(f"{version} has none of {', '.join(paths)}")


def fields(tree):
    """{class: [(name, annotation, default node or None)]} of all classes with annotated members."""
    classes = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            classes[node.name] = [(one.target.id, ast.unparse(one.annotation), one.value) for one in node.body
                                  if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
    return classes


def default_of(value):
    """The default as Python writes it; that of a factory without its lambda, nothing for a nested class."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        made = next((one.value for one in value.keywords if one.arg == "default_factory"), None)
        if isinstance(made, ast.Lambda):
            return ast.unparse(made.body)
        return {"list": "[]", "dict": "{}"}.get(ast.unparse(made) if made is not None else "", "")
    return "" if value is None else ast.unparse(value)


def keys_of(classes, name, prefix=""):
    for member, annotation, value in classes[name]:
        if annotation in classes:
            yield from keys_of(classes, annotation, f"{prefix}{member}.")
        else:
            yield f"{prefix}{member}", annotation.replace("\t", " "), default_of(value)


def print_keys(clone, versions):
    known = {}
    for version in versions:
        for key, annotation, default in keys_of(fields(source(clone, version, CONFIGS)), "JobConfig"):
            known.setdefault(key, (version, annotation, default))
    print("key\tversion\ttype\tdefault")
    for key, (version, annotation, default) in sorted(known.items()):
        print(f"{key}\t{version}\t{annotation}\t{default}")


def print_flavors(clone, version):
    """One line for each argument of a flavor: those given, nested ones behind a dot, and the class's defaults."""
    moe = fields(source(clone, version, ("torchtitan/models/moe/moe.py",)))
    print("model\tflavor\targument\tvalue")
    for model in MODELS:
        classes = fields(source(clone, version, (f"torchtitan/models/{model}/model/args.py",))) | moe
        tree = source(clone, version, (f"torchtitan/models/{model}/__init__.py",))
        tables = [node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)]
        for flavor, call in [pair for table in tables for pair in zip(table.keys, table.values)]:
            for argument, value in sorted(arguments(classes, call).items()):
                print(f"{model}\t{flavor.value}\t{argument}\t{value}")


def arguments(classes, call, prefix=""):
    result = {}
    for member, annotation, value in classes.get(ast.unparse(call.func), []):
        result |= ({f"{prefix}{member}": default_of(value)} if annotation not in classes else
                   arguments(classes, ast.Call(ast.Name(annotation), [], []), f"{prefix}{member}."))
    for one in call.keywords:
        result |= (arguments(classes, one.value, f"{prefix}{one.arg}.") if isinstance(one.value, ast.Call) else
                   {f"{prefix}{one.arg}": ast.unparse(one.value)})
    return result


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("keys", "flavors"):
        sys.exit(__doc__)
    if sys.argv[1] == "keys":
        print_keys(sys.argv[2], sys.argv[3:])
    else:
        print_flavors(sys.argv[2], sys.argv[3])
