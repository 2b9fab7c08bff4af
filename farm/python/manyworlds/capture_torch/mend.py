"""Lets torch 1 import its sharding under Python 3.11, whose dataclasses refuse the defaults that it has."""

import dataclasses
import importlib.machinery
import sys

MODULE = "torch.distributed._shard.sharded_tensor.metadata"


class Finder:
    """Loads that one module with dataclasses that have hashes, which is all that Python asks of a default."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            plain = dataclasses.dataclass
            dataclasses.dataclass = lambda cls=None, **more: plain(cls, **{"unsafe_hash": True, **more})
            try:
                load(module)
            finally:
                dataclasses.dataclass = plain

        spec.loader.exec_module = exec_module
        return spec


def install(torch_version):
    if torch_version.startswith("1.") and sys.version_info >= (3, 11):
        sys.meta_path.insert(0, Finder)
