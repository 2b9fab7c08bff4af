#!/usr/bin/env python3
"""Prints the keys that DeepSpeed's configuration may have, and the arguments that Megatron-DeepSpeed defines, from their
own sources, read as syntax (ast) and never run.

    script/read_deepspeed.py keys CLONE_OF_DEEPSPEED > tests/experiments/deepspeed/keys.tsv
    script/read_deepspeed.py arguments CLONE_OF_MEGATRON_DEEPSPEED > tests/experiments/deepspeed/arguments.txt"""

import ast
import subprocess
import sys

# {section of the file: (source, class)} of the parts that classes describe
CLASSES = {
    "zero_optimization": ("deepspeed/runtime/zero/config.py", "DeepSpeedZeroConfig"),
    "zero_optimization.offload_param": ("deepspeed/runtime/zero/offload_config.py", "DeepSpeedZeroOffloadParamConfig"),
    "zero_optimization.offload_optimizer": ("deepspeed/runtime/zero/offload_config.py",
                                            "DeepSpeedZeroOffloadOptimizerConfig"),
    "fp16": ("deepspeed/runtime/precision_config.py", "DeepSpeedFP16Config"),
    "bf16": ("deepspeed/runtime/precision_config.py", "DeepSpeedBF16Config"),
}
SECTIONS = {"offload_param", "offload_optimizer", "leaf_module", "zenflow"}


def parsed(clone, path):
    shown = subprocess.run(["git", "-C", clone, "show", f"HEAD:{path}"], capture_output=True, text=True, check=True)
    return ast.parse(shown.stdout)


def members(clone, path, name):
    """(name in the file, default) of a class's annotated members; an alias is the name."""
    found = next(node for node in ast.walk(parsed(clone, path)) if isinstance(node, ast.ClassDef) and node.name == name)
    for one in found.body:
        if not isinstance(one, ast.AnnAssign) or one.target.id in SECTIONS:
            continue
        key, default = one.target.id, "" if one.value is None else ast.unparse(one.value)
        if isinstance(one.value, ast.Call) and ast.unparse(one.value.func) == "Field":
            alias = next((word.value.value for word in one.value.keywords if word.arg == "alias"), None)
            given = next((word.value for word in one.value.keywords if word.arg == "default"), None)
            key, default = alias or key, ast.unparse(given or one.value.args[0]) if given or one.value.args else ""
        yield key, default


def top_level(clone):
    """(key, default) of what config.py looks up in the file itself, by the constants that name it."""
    constants = {}
    for path in ("deepspeed/runtime/constants.py", "deepspeed/runtime/activation_checkpointing/config.py"):
        for node in parsed(clone, path).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                constants[node.targets[0].id] = node.value.value
    for node in ast.walk(parsed(clone, "deepspeed/runtime/config.py")):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "get_scalar_param" and len(node.args) == 3 and \
                ast.unparse(node.args[0]) == "param_dict" and isinstance(node.args[1], ast.Name):
            name, default = node.args[1].id, ast.unparse(node.args[2])
            if name in constants:
                yield constants[name], str(constants.get(default, default))
    for name in ("ACT_CHKPT_PARTITION_ACTIVATIONS", "ACT_CHKPT_NUMBER_CHECKPOINTS",
                 "ACT_CHKPT_CONTIGUOUS_MEMORY_OPTIMIZATION", "ACT_CHKPT_SYNCHRONIZE_CHECKPOINT_BOUNDARY",
                 "ACT_CHKPT_PROFILE", "ACT_CHKPT_CPU_CHECKPOINTING"):
        yield f"activation_checkpointing.{constants[name]}", str(constants.get(f"{name}_DEFAULT", ""))


def arguments(clone):
    for node in ast.walk(parsed(clone, "megatron/arguments.py")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            yield from (one.value[2:] for one in node.args if isinstance(one, ast.Constant) and one.value[:2] == "--")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("keys", "arguments"):
        sys.exit(__doc__)
    if sys.argv[1] == "arguments":
        print("\n".join(sorted(set(arguments(sys.argv[2])))))
    else:
        rows = dict(top_level(sys.argv[2]))
        for section, (path, name) in CLASSES.items():
            rows |= {f"{section}.{key}": default for key, default in members(sys.argv[2], path, name)}
        print("key\tdefault")
        for key, default in sorted(rows.items()):
            print(f"{key}\t{default}")
