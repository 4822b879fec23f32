"""At most 500 lines a file and 70 a function. Older exceptions stand in a list that can only shrink."""

import subprocess

from tidy_rules.cpp import functions
from tidy_rules.tree import CPP_SUFFIXES, Finding

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
EXCEPTIONS = "tools/tidy_exceptions.txt"
_SIZED = CPP_SUFFIXES + (".py", ".sh", ".java", ".cmake")


def check(tree):
    allowed, findings = parse(tree.text(EXCEPTIONS) if EXCEPTIONS in tree.paths else "")
    used = set()
    for path in tree.paths:
        if not path.endswith(_SIZED):
            continue
        lines = tree.text(path).count("\n")
        findings += _compare(("file", path, "-"), lines, FILE_LINES_MAX, allowed, used, path, 0)
        if not path.endswith(CPP_SUFFIXES):
            continue
        for name, first_line, count in functions(tree.code(path)):
            findings += _compare(("function", path, name), count, FUNCTION_LINES_MAX, allowed, used, path, first_line)
    for key in sorted(set(allowed) - used):
        findings.append(Finding(EXCEPTIONS, 0, "size", f"{' '.join(key)} needs no exception any more: remove it"))
    return findings + _grown(tree, allowed)


def _compare(key, size, limit, allowed, used, path, line):
    if size <= limit:
        return []
    kind, _, name = key
    what = "the file" if kind == "file" else name
    if key not in allowed:
        return [Finding(path, line, "size", f"{what} has {size} lines, the limit is {limit}")]
    used.add(key)
    if size > allowed[key]:
        return [Finding(path, line, "size", f"{what} grew from {allowed[key]} to {size} lines; it may only shrink")]
    if size < allowed[key]:
        return [Finding(EXCEPTIONS, 0, "size", f"{' '.join(key)} shrank: lower {allowed[key]} to {size}")]
    return []


def parse(text):
    """Lines of "file <path> - <lines>" and "function <path> <name> <lines>"; # starts a comment."""
    allowed, findings = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split("#")[0].split()
        if not parts:
            continue
        if len(parts) != 4 or parts[0] not in ("file", "function") or not parts[3].isdigit():
            findings.append(Finding(EXCEPTIONS, number, "size", "not: file|function <path> <name or -> <lines>"))
            continue
        allowed[tuple(parts[:3])] = int(parts[3])
    return allowed, findings


def _grown(tree, allowed):
    """The list against the one before its last change: no new line, no raised number."""
    if not (tree.root / ".git").exists() or EXCEPTIONS not in tree.paths:
        return []
    committed = subprocess.run(["git", "log", "-2", "--format=%H", "--", EXCEPTIONS], cwd=tree.root,
                               capture_output=True, text=True, check=False).stdout.split()
    findings = []
    for commit in committed:
        shown = subprocess.run(["git", "show", f"{commit}:{EXCEPTIONS}"], cwd=tree.root, capture_output=True,
                               text=True, check=False)
        if shown.returncode != 0:
            continue
        before, _ = parse(shown.stdout)
        for key, size in sorted(allowed.items()):
            if size > before.get(key, 0):
                findings.append(Finding(EXCEPTIONS, 0, "size", f"{' '.join(key)} {size}: the list may only shrink"))
    return sorted(set(findings))
