"""What lies where: folder names, READMEs, files that nothing uses, stored enums, titles and links of documents."""

import os
import re

from tidy_rules.cpp import fixed_width_enums, includes
from tidy_rules.tree import Finding, line_of

FORBIDDEN_FOLDERS = {"utils", "util", "utilities", "common", "core", "misc", "helpers", "shared"}
# Whose enums go to disk or to the wire, but for errors and verdicts.
FORMAT_FOLDERS = ("src/metadata/state/", "src/storage/format/", "src/protocol/")
# Reported bugs by number, and how tests name them.
CASES = "docs/cases.md"
_CASE = re.compile(r"\bC\d{3}(?=[A-Z])|\btest_c\d{3}_")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def check(tree):
    return (_folders(tree) + _readmes(tree) + _dead_files(tree) + _headers(tree) + _enums(tree) + _documents(tree) +
            _cases(tree))


def _folders(tree):
    folders = {folder for path in tree.paths for folder in _parents(path)}
    return [Finding(folder, 0, "folder", "say what is inside instead of a name that fits anything")
            for folder in sorted(folders) if folder.rpartition("/")[2] in FORBIDDEN_FOLDERS]


def _parents(path):
    while path := path.rpartition("/")[0]:
        yield path


def _readmes(tree):
    tops = sorted({path.split("/")[1] for path in tree.paths if path.startswith("src/") and path.count("/") > 1})
    return [Finding(f"src/{top}/README.md", 0, "readme", "missing: purpose, surface, what does not belong here")
            for top in tops if f"src/{top}/README.md" not in tree.paths]


def _dead_files(tree):
    findings, included = [], set()
    for path in tree.sources:
        own = path.removeprefix("src/")
        included |= {name for _, name, quoted in includes(tree.code(path)) if quoted and name != own}
    for path in tree.sources:
        if path.endswith(".h") and path.removeprefix("src/") not in included:
            findings.append(Finding(path, 0, "dead", "no file includes this header"))
    # Sources are found by pattern, so one is dead only where its folder is not part of the build.
    for folder in sorted({path.rpartition("/")[0] for path in tree.sources if path.endswith(".cc")}):
        if not _is_built(tree, folder):
            findings.append(Finding(folder, 0, "dead", "no CMakeLists.txt builds the sources here"))
    return findings


def _is_built(tree, folder):
    """Whether the build reaches the folder's CMakeLists.txt from src/ by add_subdirectory lines."""
    if f"{folder}/CMakeLists.txt" not in tree.paths:
        return False
    if folder == "src":
        return True
    for parent in _parents(folder):
        listing, name = f"{parent}/CMakeLists.txt", folder.removeprefix(f"{parent}/")
        if (listing in tree.paths and re.search(rf"add_subdirectory\(\s*{re.escape(name)}\s*\)", tree.text(listing))
                and _is_built(tree, parent)):
            return True
    return False


def _headers(tree):
    return [Finding(path, 1, "header", "no #pragma once") for path in tree.sources
            if path.endswith(".h") and not re.search(r"^#pragma once$", tree.text(path), re.MULTILINE)]


def _enums(tree):
    """A stored enum gives every value; so does any enum that gives one."""
    findings = []
    for path in tree.sources:
        code = tree.code(path)
        for position, name, enumerators in fixed_width_enums(code):
            implicit = [entry for entry in enumerators if "=" not in entry]
            may_be_stored = path.startswith(FORMAT_FOLDERS) and not name.endswith(("Errc", "Verdict"))
            if implicit and (may_be_stored or len(implicit) < len(enumerators)):
                findings.append(Finding(path, line_of(code, position), "enum",
                                        f"{name} may be stored: give {implicit[0]} a value"))
    return findings


def _documents(tree):
    findings, titles = [], {}
    documents = [path for path in tree.paths if path.endswith(".md")]
    for path in documents:
        text = tree.text(path)
        title = text.split("\n", 1)[0]
        if not re.match(r"# \S", title):
            findings.append(Finding(path, 1, "title", "a document starts with '# ' and its title"))
        elif path.startswith("docs/"):
            if title in titles:
                findings.append(Finding(path, 1, "title", f"the same title as {titles[title]}"))
            titles[title] = path
        findings += _links(tree, path, text)
    index = "docs/README.md"
    if index in tree.paths:
        linked = {os.path.normpath(f"docs/{target.split('#')[0]}") for target in _LINK.findall(tree.text(index))}
        for path in documents:
            if path.startswith("docs/") and path != index and path not in linked:
                findings.append(Finding(index, 0, "index", f"does not name {path}"))
    return findings


def _cases(tree):
    """A test named by a case's number can be understood from this tree alone."""
    known = set(re.findall(r"^\| (C\d{3}) \|", tree.text(CASES), re.MULTILINE)) if CASES in tree.paths else set()
    findings = []
    for path in tree.paths:
        if not path.endswith(("_test.cc", ".py")) or path.startswith("tools/"):
            continue
        text = tree.text(path)
        for match in _CASE.finditer(text):
            number = "C" + re.search(r"\d{3}", match.group()).group()
            if number not in known:
                findings.append(Finding(path, line_of(text, match.start()), "case", f"{number} is not in {CASES}"))
    return findings


def _links(tree, path, text):
    findings = []
    # Code in a document is no link.
    prose = re.sub(r"```.*?```|`[^`\n]*`", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.DOTALL)
    for match in _LINK.finditer(prose):
        target = match.group(1).split("#")[0]
        if not target or "://" in target or target.startswith("mailto:"):
            continue
        resolved = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if not (tree.root / resolved).exists():
            findings.append(Finding(path, line_of(prose, match.start()), "link", f"{target} does not exist"))
    return findings
