#!/usr/bin/env python3
"""Holds the tree to its rules: who may include whom, names kept to their folders, sizes, documents.

    tools/tidy.py [ROOT]      prints each finding as path:line: [rule] message; exits with 1 if there is any

The rules are in tools/tidy_rules/, their reasons in CONTRIBUTING.md, their own tests in tools/tidy_test.py.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from tidy_rules import layers, layout, names, sizes  # noqa: E402
from tidy_rules.tree import Tree  # noqa: E402


def findings_of(root):
    tree = Tree(root)
    found = []
    for rules in (layers, names, sizes, layout):
        found += rules.check(tree)
    return sorted(found)


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = findings_of(root)
    for finding in found:
        print(finding)
    print(f"tidy: {len(found)} findings" if found else "tidy: clean", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
