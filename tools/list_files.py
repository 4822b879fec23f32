#!/usr/bin/env python3
"""Prints the files of the tree, each ended by a NUL, as the checks of the tree see them (tidy_rules/tree.py)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from tidy_rules.tree import Tree  # noqa: E402

if __name__ == "__main__":
    for path in Tree(Path(__file__).resolve().parent.parent).paths:
        print(path, end="\0")
