"""The files a check looks at, and what a check gives back."""

import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tidy_rules import cpp

CPP_SUFFIXES = (".cc", ".h")
# What stands beside the code but is not part of a shipped program.
TEST_SUFFIXES = ("_testing.h", "_test.cc", "_fuzz.cc", "_bench.cc")


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: [{self.rule}] {self.message}"


class Tree:
    """The files as git sees them (with those not added yet) or, in a copy without git, all that .gitignore leaves."""

    def __init__(self, root):
        self.root = Path(root)

    @cached_property
    def paths(self):
        if (self.root / ".git").exists():
            listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                     cwd=self.root, capture_output=True, check=True).stdout.decode()
            # A file removed from the work tree but not yet from the index is gone.
            return sorted({path for path in listing.split("\0") if path and (self.root / path).is_file()})
        return sorted(path for path in self._all() if not self._is_ignored(path))

    def _all(self):
        return [str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()]

    @cached_property
    def _ignored(self):
        file = self.root / ".gitignore"
        return file.read_text().split() if file.exists() else []

    def _is_ignored(self, path):
        """By the two forms that .gitignore has here: /folder/ at the top, and folder/ anywhere."""
        return any(f"/{path}".startswith(rule) if rule.startswith("/") else f"/{rule}" in f"/{path}"
                   for rule in self._ignored)

    @cached_property
    def sources(self):
        """The C++ files under src/."""
        return [path for path in self.paths if path.startswith("src/") and path.endswith(CPP_SUFFIXES)]

    @cache
    def text(self, path):
        return (self.root / path).read_text(errors="replace")

    @cache
    def code(self, path):
        """The text of a C++ file with comments and the insides of literals blanked out; same length, same lines."""
        return cpp.blank(self.text(path))

    def is_text(self, path):
        return b"\0" not in (self.root / path).read_bytes()[:4096]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def is_test(path):
    return path.endswith(TEST_SUFFIXES)
