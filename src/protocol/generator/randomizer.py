"""Emits the functions that fill a message with random values that its version can carry."""

import re

from cpp import nullable_text, snake, version_test
from schema import PRIMITIVES, SIZED


def fill_value(f, target):
    if f.array:
        lines = [f"{target}.resize(fill.items());"]
        call = "fill.value(item);" if f.type in PRIMITIVES or f.type in SIZED else "fill_in(fill, version, item);"
        return lines + [f"for (auto& item : {target}) {call}"]
    if f.type in PRIMITIVES or f.type in SIZED:
        return [f"fill.value({target});"]
    return [f"fill_in(fill, version, {target});"]


def fill_field(f):
    name = f"out.{snake(f.name)}"
    if not f.nullable:
        return fill_value(f, name)
    null = nullable_text(f)
    lines = [f"if ({null if null == 'true' else '(' + null + ')'} && fill.null()) {{", f"  {name}.reset();"]
    lines += ["} else {"]
    if f.array or f.type in PRIMITIVES or f.type in SIZED:
        lines += [f"  auto& inner = {name}.emplace();"]
        lines += ["  " + s for s in fill_value(f, "inner")]
    else:
        lines += [f"  fill_in(fill, version, {name}.emplace());"]
    return lines + ["}"]


def function(name, owner, signature):
    lines = []
    for f in owner.fields:
        test = version_test(f.versions, owner.versions)
        body = fill_field(f)
        if f.tag is not None:
            test = f"{test} && fill.tagged()" if test else "fill.tagged()"
        if test:
            lines += [f"  if ({test}) {{"] + ["    " + s for s in body] + ["  }"]
        else:
            lines += ["  " + s for s in body]
    text = "\n".join(lines)
    version = "int16_t version" if re.search(r"\bversion\b", text) else "int16_t"
    return signature.format(version=version, name=name) + " {\n" + text + "\n}\n"


def define(message):
    parts = ["namespace {\n"]
    for s in message.structs:
        name = f"{message.name}::{s.name}"
        parts.append(function(name, s, "void fill_in(MessageRandomizer& fill, {version}, {name}& out)"))
    parts.append(function(message.name, message, "void fill_in(MessageRandomizer& fill, {version}, {name}& out)"))
    parts.append("}  // namespace\n")
    parts.append(
        f"void randomize({message.name}& out, Random& random, int16_t version) {{\n"
        f"  out = {message.name}();\n"
        "  MessageRandomizer fill(random);\n"
        "  fill_in(fill, version, out);\n"
        "}\n"
    )
    return "\n".join(parts)
