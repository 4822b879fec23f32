#!/usr/bin/env python3
"""Runs clang-tidy over the sources (not over tests), and compiles each header by itself, with the flags of a build.

    tools/lint.py BUILD-FOLDER [PATTERN]     only files whose path holds PATTERN; prints findings, exits with 1 on any

Slow (some seconds a file), so it is a stage of ./test --long only.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def sources(build):
    """{source path: compile command without its input and output} of what the build compiles under src/."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.is_relative_to(ROOT / "src"):
            words = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
            found[str(path.relative_to(ROOT))] = words[:words.index("-o")]
    return found


def tidy(build, path):
    done = subprocess.run(["clang-tidy-19", "-p", str(build), "--quiet", path], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    return done.stdout if done.returncode != 0 else ""


def compile_header(flags, path):
    """A header that needs another one to be included first is one that does not include what it uses."""
    done = subprocess.run([*flags, "-fsyntax-only", "-Wno-pragma-once-outside-header", "-x", "c++", path], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    return done.stderr if done.returncode != 0 else ""


def main():
    build, pattern = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else ""
    compiled = sources(build)
    jobs = [(tidy, build, path) for path in sorted(compiled)
            if pattern in path and not re.search(r"_(test|fuzz|bench)\.cc$", path)]
    for header in sorted((ROOT / "src").rglob("*.h")):
        path = str(header.relative_to(ROOT))
        beside = [source for source in sorted(compiled) if Path(source).parent == Path(path).parent]
        if pattern in path and compiled:
            jobs.append((compile_header, compiled[(beside or sorted(compiled))[0]], path))
    failed = 0
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for output in pool.map(lambda job: job[0](*job[1:]), jobs):
            if output:
                failed += 1
                print(output, flush=True)
    print(f"lint: {len(jobs)} files, {failed} with findings", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
