#!/usr/bin/env python3
"""Writes C++ that ends the capture, by name, at every exported function that no file of the room defines.

    unmodelled.py names/cudart_13.txt names/nccl_2.txt > unmodelled.cpp

The definitions are weak, so that those of the room take their place where they are there."""

import sys


def names(paths):
    """The names in the files, one a line, without those that stand in two of them."""
    found = set()
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            found.update(line.strip() for line in lines if line.strip())
    return sorted(found)


def main():
    print('#include "experiments/capture/session.hpp"')
    print("using manyworlds::experiments::capture::end_unmodelled;")
    print('extern "C" {')
    for name in names(sys.argv[1:]):
        print(f'__attribute__((weak)) void {name}() {{ end_unmodelled("{name}"); }}')
    print("}")


if __name__ == "__main__":
    main()
