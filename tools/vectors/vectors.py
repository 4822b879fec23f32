#!/usr/bin/env python3
"""Holds our codecs against the Java client's. Run by hand; needs a JDK and the kafka-clients jars.

    vectors.py make  NEW OLD                     writes src/protocol/vectors/*.txt, which a unit test reads
    vectors.py check NEW OLD PROGRAM [COUNT]     COUNT (100) random messages of each API and version from Java through
                                                 our codec, and as many from ours through Java's; prints the counts
                                                 (tests/e2e/test_codec.py does this in ./test)

NEW and OLD are class paths: kafka-clients 4.4.0 and 3.9.2, each with slf4j-api. OLD serves the versions that NEW no
longer has. PROGRAM is protocol_vectors of a build (ninja protocol_vectors).
"""

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTOCOL = HERE.parent.parent / "src/protocol"
sys.path.insert(0, str(PROTOCOL / "generator"))

import cpp  # noqa: E402
import schema  # noqa: E402

KEPT = 10  # messages of each version in the files
SEED = 4


class Java:
    """Vectors.java on one class path, told only of versions that this path has."""

    def __init__(self, class_path, classes):
        self.command = ["java", "-cp", f"{classes}:{class_path}", "Vectors"]
        lines = self.run(["versions"], "").splitlines()
        self.versions = {int(key): (int(low), int(high)) for key, low, high in (line.split() for line in lines)}

    def has(self, key, version):
        low, high = self.versions.get(key, (1, 0))
        return low <= version <= high

    def run(self, arguments, text):
        done = subprocess.run(self.command + arguments, input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"Java stopped:\n{done.stderr}")
        return done.stdout


def our_versions():
    """(name, key, version) of all that we have codecs for."""
    found = []
    for path in sorted((PROTOCOL / "schemas").glob("*Request.schema")):
        message = schema.load(path)
        for version in range(message.versions[0], message.versions[1] + 1):
            found.append((message.name.removesuffix("Request"), message.api, version))
    return found


def java_lines(sides, count):
    """Vector lines of all our versions, each from the first side that has it."""
    lines = []
    todo = [(key, version) for _, key, version in our_versions()]
    for java in sides:
        mine = [pair for pair in todo if java.has(*pair)]
        todo = [pair for pair in todo if not java.has(*pair)]
        text = "".join(f"{key} {version}\n" for key, version in mine)
        lines += java.run(["write", str(count), str(SEED)], text).splitlines()
    if todo:
        raise SystemExit(f"no jar has these versions: {todo}")
    return lines


def make(sides):
    names = {str(key): name for name, key, _ in our_versions()}
    files = {}
    for line in java_lines(sides, KEPT):
        files.setdefault(names[line.split()[0]], []).append(line + "\n")
    folder = PROTOCOL / "vectors"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for name, lines in files.items():
        (folder / f"{cpp.snake(name)}.txt").write_text("".join(lines))


def exchange(sides, program, count):
    """Sends `count` random messages of each API and version through both codecs, in both directions.

    Returns two Counters by (name, version, "request" or "response", "Java" or "us" as the writer): messages, and those
    of them that were read with unknown tagged fields too. Stops the program at the first that comes out different.
    """
    from_java = java_lines(sides, count)
    done = subprocess.run([program, "check"], input="\n".join(from_java) + "\n", stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit("our codec failed")
    ours = subprocess.run([program, "write", str(count), str(SEED)], stdout=subprocess.PIPE, text=True, check=True)
    from_us = lines = ours.stdout.splitlines()
    for java in sides:
        mine, rest = [], []
        for line in lines:
            key, _, version = line.split(" ", 3)[:3]
            (mine if java.has(int(key), int(version)) else rest).append(line)
        java.run(["check"], "\n".join(mine) + "\n")
        lines = rest
    if lines:
        raise SystemExit(f"{len(lines)} messages of ours are of a version that no jar has")

    names = {str(key): name for name, key, _ in our_versions()}
    messages, tagged = Counter(), Counter()
    for writer, written in (("Java", from_java), ("us", from_us)):
        for line in written:
            key, kind, version, *encodings = line.split(" ")
            place = names[key], int(version), kind, writer
            messages[place] += 1
            tagged[place] += len(encodings) > 1
    return messages, tagged


def table(messages, tagged):
    """A line for each API: its versions, messages of all of them, and of those with unknown tags, by writer."""
    for name in dict.fromkeys(name for name, *_ in messages):
        versions = sorted({version for api, version, *_ in messages if api == name})
        java, us = (sum(n for (api, _, _, by), n in messages.items() if (api, by) == (name, writer))
                    for writer in ("Java", "us"))
        unknown = sum(n for (api, *_), n in tagged.items() if api == name)
        yield f"{name} {versions[0]}-{versions[-1]}: {java} from Java, {unknown} of them with unknown tags too, {us} from us"


def jars(new, old, classes):
    """The two class paths as codecs; `classes` is a folder to compile into."""
    subprocess.run(["javac", "-d", str(classes), "-cp", new, str(HERE / "Vectors.java")], check=True)
    return [Java(new, classes), Java(old, classes)]


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("make", "check"):
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as classes:
        new, old = sys.argv[2:4]
        sides = jars(new, old, classes)
        if sys.argv[1] == "make":
            make(sides)
        else:
            messages, tagged = exchange(sides, sys.argv[4], int(sys.argv[5]) if len(sys.argv) > 5 else 100)
            print("\n".join(table(messages, tagged)))


if __name__ == "__main__":
    main()
