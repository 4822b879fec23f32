"""Reads the schema notation of docs/schemas.md into Message objects and checks what the emitters rely on."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

MAX_VERSION = 32767
PRIMITIVES = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16,
}  # fmt: skip
# Shortest form on the wire: a varint, or an empty string of the older form.
SIZED = {"string": (1, 2), "bytes": (1, 4), "records": (1, 4)}


class SchemaError(Exception):
    pass


@dataclass
class Field:
    name: str
    type: str  # a primitive, string, bytes, records or a struct's name
    array: bool
    versions: tuple
    nullable: tuple | None
    tag: int | None = None
    default: str | None = None
    entity: str | None = None
    map_key: bool = False
    secret: bool = False
    inflexible: bool = False
    fields: list = field(default_factory=list)


@dataclass
class Struct:
    name: str
    versions: tuple  # the versions of the message in which it can appear
    fields: list


@dataclass
class Message:
    kind: str  # request, response or header
    name: str
    api: int | None
    versions: tuple
    flexible: int  # first flexible version; MAX_VERSION: none
    fields: list
    structs: list  # all of them, each after those it uses


def split(line):
    """Words of a line; a default may be a quoted string with spaces."""
    return re.findall(r'"(?:[^"\\]|\\.)*"|\S+', line)


def parse_versions(text, window):
    """3+, 3-5 or 3, within the window."""
    low, _, high = text.partition("-")
    if text.endswith("+"):
        versions = int(text[:-1]), window[1]
    else:
        versions = int(low), int(high or low)
    if versions[0] > versions[1] or versions[0] < window[0] or versions[1] > window[1]:
        raise SchemaError(f"versions {text} outside {window[0]}-{window[1]}")
    return versions


def parse_field(words, window):
    name, type_text = words[0], words[1]
    words = words[2:]
    match = re.fullmatch(r"(\[\])?(\w+)(\?(\d.*)?)?", type_text)
    if not match:
        raise SchemaError(f"bad type {type_text}")
    versions = window
    if words and words[0][0].isdigit():
        versions = parse_versions(words.pop(0), window)
    nullable = None
    if match[3]:
        nullable = parse_versions(match[4], versions) if match[4] else versions
    f = Field(name, match[2], bool(match[1]), versions, nullable)
    while words:
        word = words.pop(0)
        if word == "tag":
            f.tag = int(words.pop(0))
        elif word == "=":
            text = words.pop(0)
            f.default = json.loads(text) if text.startswith('"') else text
        elif word.startswith("@"):
            f.entity = word[1:]
        elif word == "key":
            f.map_key = True
        elif word == "secret":
            f.secret = True
        elif word == "inflexible":
            f.inflexible = True
        else:
            raise SchemaError(f"unknown word {word}")
    return f


def parse_head(words):
    kind, name = words[0], words[1]
    values = dict(zip(words[2::2], words[3::2]))
    versions = parse_versions(values["versions"], (0, MAX_VERSION - 1))
    flexible = MAX_VERSION if values["flexible"] == "none" else int(values["flexible"].rstrip("+"))
    return Message(kind, name, int(values["api"]) if "api" in values else None, versions, flexible, [], [])


def parse(text):
    lines = text.splitlines()
    message = parse_head(split(lines[0]))
    commons = {}
    # Each entry: (depth, list that takes fields of that depth, versions they may have)
    stack = [(1, message.fields, message.versions)]
    for line in lines[1:]:
        words = split(line)
        if words[0] == "struct":
            commons[words[1]] = []
            stack = [(1, commons[words[1]], message.versions)]
            continue
        depth = (len(line) - len(line.lstrip(" "))) // 2
        while stack[-1][0] > depth:
            stack.pop()
        if stack[-1][0] != depth:
            raise SchemaError(f"indented too far: {line}")
        f = parse_field(words, stack[-1][2])
        stack[-1][1].append(f)
        stack.append((depth + 1, f.fields, f.versions))
    collect_structs(message, commons)
    return message


def collect_structs(message, commons):
    """Fills message.structs, and makes sure that no struct contains itself and that each name means one thing."""
    done = {}

    def visit(f, window, path):
        if f.type in PRIMITIVES or f.type in SIZED:
            if f.fields:
                raise SchemaError(f"{f.name}: {f.type} has no fields")
            return
        if f.type in path:
            raise SchemaError(f"{f.type} contains itself")
        inner = f.fields or commons.get(f.type)
        if not inner:
            raise SchemaError(f"{f.name}: unknown type {f.type}")
        versions = f.versions if f.fields else window
        if f.type in done:
            if f.fields:
                raise SchemaError(f"{f.type} defined twice")
            return
        for g in inner:
            visit(g, window, path + [f.type])
        done[f.type] = Struct(f.type, versions, inner)

    for f in message.fields:
        visit(f, message.versions, [])
    message.structs = list(done.values())


def min_wire_bytes(message, struct):
    """Least bytes an item of the struct can take, over all versions: what makes a count of them believable."""

    def field_bytes(f, version):
        flexible = version >= message.flexible
        nullable = f.nullable and f.nullable[0] <= version <= f.nullable[1]
        if f.array:
            return 1 if flexible else 4
        if f.type in PRIMITIVES:
            return PRIMITIVES[f.type]
        if f.type in SIZED:
            return SIZED[f.type][0 if flexible else 1]
        if nullable:
            return 1
        inner = next(s for s in message.structs if s.name == f.type)
        return struct_bytes(inner, version)

    def struct_bytes(s, version):
        total = 1 if version >= message.flexible else 0
        for f in s.fields:
            if f.tag is None and f.versions[0] <= version <= f.versions[1]:
                total += field_bytes(f, version)
        return total

    versions = range(struct.versions[0], struct.versions[1] + 1)
    least = min(struct_bytes(struct, version) for version in versions)
    if least == 0:
        raise SchemaError(f"{struct.name} can be empty")
    return least


def load(path):
    try:
        return parse(Path(path).read_text())
    except (SchemaError, ValueError, KeyError, IndexError) as e:
        raise SystemExit(f"{path}: {e}") from e
