"""Emits the structs of an API's two messages and their codecs."""

import itertools
import re

from schema import MAX_VERSION, PRIMITIVES, SIZED, min_wire_bytes

CPP_TYPES = {
    "bool": "bool", "int8": "int8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int32_t",
    "uint32": "uint32_t", "int64": "int64_t", "float64": "double", "uuid": "Uuid", "string": "std::string",
    "bytes": "Slice", "records": "SliceChain",
}  # fmt: skip

# Strong types: by what the schema says a field names, and by the few names that mean one thing everywhere.
BY_ENTITY = {("brokerId", "int32"): "BrokerId", ("producerId", "int64"): "ProducerId"}
BY_NAME = {
    ("Partition", "int32"): "PartitionIndex",
    ("PartitionIndex", "int32"): "PartitionIndex",
    ("Index", "int32"): "PartitionIndex",
    ("Partitions", "int32"): "PartitionIndex",
    ("PartitionIndexes", "int32"): "PartitionIndex",
    ("ProducerEpoch", "int16"): "ProducerEpoch",
    ("ErrorCode", "int16"): "ErrorCode",
    ("Offset", "int64"): "Offset",
    ("BaseOffset", "int64"): "Offset",
    ("FetchOffset", "int64"): "Offset",
    ("FirstOffset", "int64"): "Offset",
    ("EndOffset", "int64"): "Offset",
    ("CommittedOffset", "int64"): "Offset",
    ("HighWatermark", "int64"): "Offset",
    ("LastStableOffset", "int64"): "Offset",
    ("LogStartOffset", "int64"): "Offset",
    ("LowWatermark", "int64"): "Offset",
}
# Words that a field may not be called: C++'s, and those the emitted functions use.
RESERVED = {
    "class", "default", "delete", "namespace", "operator", "register", "template", "read", "write", "print",
    "version", "reader", "writer", "printer", "flexible",
}  # fmt: skip


def snake(name):
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text).lower()
    if text in RESERVED:
        raise SystemExit(f"field name {name} cannot be used in C++")
    return text


def item_type(f):
    """C++ type of the field's value, or of its items if it is an array."""
    strong = BY_ENTITY.get((f.entity, f.type)) or BY_NAME.get((f.name, f.type))
    return strong or CPP_TYPES.get(f.type, f.type)


def cpp_type(f):
    text = item_type(f)
    if f.array:
        text = f"std::vector<{text}>"
    return f"std::optional<{text}>" if f.nullable else text


def cpp_default(f):
    """Initializer of the member: the schema's default, else Kafka's own (zero, empty, null for records)."""
    # Every member has one, or clang would warn of designated initializers that leave it out.
    if f.default == "null" or (f.type == "records" and f.default is None):
        return "{}"
    if f.array or f.type not in CPP_TYPES or f.type in ("bytes", "records"):
        if f.default is not None:
            raise SystemExit(f"{f.name}: default {f.default} of a {f.type}")
        return f" = {cpp_type(f)[len('std::optional<'):-1]}{{}}" if f.nullable else "{}"
    if f.type == "string":
        return f' = "{f.default or ""}"' if f.nullable or f.default else "{}"
    if f.type == "uuid":
        return "{}"
    value = f.default or ("false" if f.type == "bool" else "0")
    if f.type != "bool":
        number = int(value, 0)
        value = "INT32_MIN" if number == -(2**31) else str(number)
    strong = item_type(f)
    if strong == "ErrorCode":
        if value != "0":
            raise SystemExit(f"{f.name}: default {value} of an error code")
        return " = ErrorCode::kNone"
    if strong != CPP_TYPES[f.type]:
        return "{}" if value == "0" else f"{{{value}}}"
    return f" = {value}"


def default_test(f, access):
    """C++ condition: the field is not at its default, so that a tagged field must be written."""
    if f.nullable and f.default == "null":
        return f"{access}.has_value()"
    if f.nullable:
        raise SystemExit(f"{f.name}: a tagged nullable field without null as its default")
    if f.array or f.type in ("string", "bytes"):
        if f.default:
            raise SystemExit(f"{f.name}: a tagged field with a default that is not empty")
        return f"!{access}.empty()"
    if f.type == "uuid":
        return f"!{access}.is_zero()"
    if f.type not in PRIMITIVES:
        return f"{access} != {f.type}{{}}"
    if f.type == "bool":
        return access if f.default in (None, "false") else f"!{access}"
    strong = item_type(f)
    value = str(int(f.default or "0", 0))
    if strong == "ErrorCode":
        return f"{access} != ErrorCode::kNone"
    return f"{access} != {strong}({value})" if strong != CPP_TYPES[f.type] else f"{access} != {value}"


def version_test(versions, window):
    """C++ condition for `version` to lie in versions, given that it lies in window; empty if it always does."""
    low, high = versions
    if low == high and versions != window:
        return f"version == {low}"
    tests = []
    if low > window[0]:
        tests.append(f"version >= {low}")
    if high < window[1]:
        tests.append(f"version <= {high}")
    return " && ".join(tests)


def nullable_text(f):
    """C++ expression: null can be said in this version."""
    return version_test(f.nullable, f.versions) or "true"


class Emitter:
    def __init__(self, message):
        self.message = message
        self.lines = []

    def add(self, indent, text):
        self.lines.append("  " * indent + text)

    def guarded(self, indent, test, statements):
        """The statements, under an if when test is not empty."""
        if not test:
            for s in statements:
                self.add(indent, s)
        else:
            self.add(indent, f"if ({test}) {{")
            for s in statements:
                self.add(indent + 1, s)
            self.add(indent, "}")

    def flexible_text(self, f=None):
        return "false" if f is not None and f.inflexible else "flexible"

    # --- header ---

    def declare(self):
        m = self.message
        if m.structs:
            # Not inside the message, where std::optional of them would ask for a constructor before the class that
            # encloses them is complete.
            self.add(0, f"namespace {snake(m.name)}_types {{")
            for s in m.structs:
                self.add(0, f"struct {s.name} {{")
                self.add(1, f"static constexpr size_t kMinWireBytes = {min_wire_bytes(m, s)};")
                self.members(1, s)
                self.add(0, "};")
            self.add(0, f"}}  // namespace {snake(m.name)}_types")
            self.add(0, "")
        about = f"Versions {m.versions[0]}-{m.versions[1]}"
        if m.flexible <= m.versions[1]:
            about += f", flexible from {m.flexible}"
        self.add(0, f"// {about}. A version behind a field: it has its default in all others.")
        self.add(0, f"struct {m.name} {{")
        if m.api is not None:
            self.add(1, f"static constexpr ApiKey kApiKey = ApiKey::k{m.name.removesuffix(m.kind.capitalize())};")
            self.add(1, f"static constexpr bool kIsRequest = {'true' if m.kind == 'request' else 'false'};")
        self.add(1, f"static constexpr int16_t kMinVersion = {m.versions[0]};")
        self.add(1, f"static constexpr int16_t kMaxVersion = {m.versions[1]};")
        if m.kind == "request":
            self.add(1, f"using Response = {m.name.removesuffix('Request')}Response;")
        for s in m.structs:
            self.add(1, f"using {s.name} = {snake(m.name)}_types::{s.name};")
        self.add(0, "")
        self.members(1, m)
        self.add(0, "};")
        return "\n".join(self.lines) + "\n"

    def members(self, indent, owner):
        for f in owner.fields:
            note = version_note(f, owner.versions)
            self.add(indent, f"{cpp_type(f)} {snake(f.name)}{cpp_default(f)};{note}")
        self.add(0, "")
        self.add(indent, "void write(MessageWriter& writer, int16_t version) const;")
        self.add(indent, "void read(MessageReader& reader, int16_t version);")
        self.add(indent, "void print(MessagePrinter& printer) const;")
        self.add(indent, f"bool operator==(const {owner.name}&) const = default;")

    # --- source ---

    def define(self):
        for s in self.message.structs:
            self.functions(f"{self.message.name}::{s.name}", s)
        self.functions(self.message.name, self.message)
        return "\n".join(self.lines) + "\n"

    def begin(self, signature, owner, uses_version, uses_flexible):
        version = "int16_t version" if uses_version else "int16_t"
        self.add(0, signature.replace("int16_t version", version) + " {")
        if uses_flexible:
            low, high = owner.versions
            at = self.message.flexible
            if at <= low or at > high:
                self.add(1, f"constexpr bool flexible = {'true' if at <= low else 'false'};")
            else:
                self.add(1, f"const bool flexible = version >= {at};")

    def functions(self, qualified, owner):
        plain = [f for f in owner.fields if f.tag is None]
        tagged = sorted((f for f in owner.fields if f.tag is not None), key=lambda f: f.tag)
        for signature, one, tags in (
            (f"void {qualified}::write(MessageWriter& writer, int16_t version) const", self.write_field,
             self.write_tags),
            (f"void {qualified}::read(MessageReader& reader, int16_t version)", self.read_field, self.read_tags),
        ):  # fmt: skip
            outer, self.lines = self.lines, []
            for test, fields in itertools.groupby(plain, lambda f: version_test(f.versions, owner.versions)):
                self.guarded(1, test, [line for f in fields for line in one(f)])
            if self.message.flexible <= owner.versions[1]:
                tags(tagged, owner)
            body, self.lines = self.lines, outer
            text = "\n".join(body)
            flexible = re.search(r"\bflexible\b", text) is not None
            inside = owner.versions[0] < self.message.flexible <= owner.versions[1]
            self.begin(signature, owner, re.search(r"\bversion\b", text) or (flexible and inside), flexible)
            self.lines += body + ["}", ""]
        self.add(0, f"void {qualified}::print(MessagePrinter& printer) const {{")
        for f in owner.fields:
            show = "printer.secret();" if f.secret else f"printer.value({snake(f.name)});"
            self.add(1, f'printer.name("{snake(f.name)}");')
            self.add(1, show)
        self.lines += ["}", ""]

    def write_field(self, f):
        name, flexible = snake(f.name), self.flexible_text(f)
        if f.array:
            value = f"*{name}" if f.nullable else name
            if f.type == "string":
                items = [f"writer.items({value}, {flexible});"]
            elif f.type in PRIMITIVES:
                items = [f"writer.items({value});"]
            else:
                items = [f"for (const auto& item : {value}) item.write(writer, version);"]
            if not f.nullable:
                return [f"writer.count({name}.size(), {flexible});"] + items
            return (
                [f"if ({name}) {{", f"  writer.count({name}->size(), {flexible});"]
                + ["  " + i for i in items]
                + ["} else {", f"  writer.null_count({flexible}, {nullable_text(f)});", "}"]
            )
        if f.type in SIZED:
            null = f", {nullable_text(f)}" if f.nullable else ""
            return [f"writer.{f.type}({name}, {flexible}{null});"]
        if f.type in PRIMITIVES:
            return [f"writer.put({name});"]
        if not f.nullable:
            return [f"{name}.write(writer, version);"]
        if f.nullable != f.versions:
            raise SystemExit(f"{f.name}: a struct that is nullable in some of its versions only")
        return [
            f"writer.put(static_cast<int8_t>({name} ? 1 : -1));",
            f"if ({name}) {name}->write(writer, version);",
        ]

    def read_field(self, f):
        name, flexible = snake(f.name), self.flexible_text(f)
        if f.array:
            target = f"{name}.emplace()" if f.nullable else name
            wire = f"{f.type}::kMinWireBytes"
            if f.type == "string":
                item, wire = f"reader.items({target}, *item_count, {flexible});", "1"
            elif f.type in PRIMITIVES:
                item, wire = f"reader.items({target}, *item_count);", str(PRIMITIVES[f.type])
            else:
                item = f"reader.structs({target}, *item_count, version);"
            null = nullable_text(f) if f.nullable else "false"
            call = f"reader.count({flexible}, {null}, {wire}, sizeof({item_type(f)}))"
            if not f.nullable:
                return [f"if (auto item_count = {call}) {item}"]
            return [f"if (auto item_count = {call}) {{", f"  {item}", "} else {", f"  {name}.reset();", "}"]
        if f.type in SIZED:
            null = f", {nullable_text(f)}" if f.nullable else ""
            return [f"reader.{f.type}({name}, {flexible}{null});"]
        if f.type in PRIMITIVES:
            return [f"reader.get({name});"]
        if not f.nullable:
            return [f"{name}.read(reader, version);"]
        return [
            "int8_t is_present = -1;",
            "reader.get(is_present);",
            f"if (is_present < 0) {name}.reset();",
            f"else {name}.emplace().read(reader, version);",
        ]

    def tag_test(self, f, owner):
        """Like version_test, where only flexible versions come into question."""
        return version_test(f.versions, (max(owner.versions[0], self.message.flexible), owner.versions[1]))

    def write_tags(self, tagged, owner):
        statements = []
        if not tagged:
            statements.append("writer.unsigned_varint(0);")
        else:
            wanted = []
            for f in tagged:
                test = self.tag_test(f, owner)
                name = snake(f.name)
                test = f"{test} && {default_test(f, name)}" if test else default_test(f, name)
                statements.append(f"const bool has_{name} = {test};")
                wanted.append(f"has_{name}")
            count = " + ".join(wanted)
            statements.append(f"writer.unsigned_varint(static_cast<uint32_t>({count}));")
            for f in tagged:
                if f.type == "records":
                    raise SystemExit(f"{f.name}: records in a tagged field")
                statements += [f"if (has_{snake(f.name)}) {{", f"  const size_t tag_begin = writer.begin_tag({f.tag});"]
                statements += ["  " + s for s in self.write_field(f)]
                statements += ["  writer.end_tag(tag_begin);", "}"]
        self.guarded(1, self.tag_guard(owner), statements)

    def read_tags(self, tagged, owner):
        if not tagged:
            self.guarded(1, self.tag_guard(owner), ["reader.skip_tags();"])
            return
        statements = [
            "for (uint32_t tags_left = reader.tag_count(); tags_left > 0 && reader.ok(); --tags_left) {",
            "  const MessageReader::Tag tag_at = reader.begin_tag();",
            "  bool is_known = true;",
        ]
        word = "if"
        for f in tagged:
            test = self.tag_test(f, owner)
            test = f"tag_at.number == {f.tag}" + (f" && {test}" if test else "")
            statements.append(f"  {word} ({test}) {{")
            statements += ["    " + s for s in self.read_field(f)]
            word = "} else if"
        statements += ["  } else {", "    is_known = false;", "  }", "  reader.end_tag(tag_at, is_known);", "}"]
        self.guarded(1, self.tag_guard(owner), statements)

    def tag_guard(self, owner):
        return "flexible" if owner.versions[0] < self.message.flexible <= owner.versions[1] else ""


def version_note(f, window):
    if f.versions == window:
        return ""
    low, high = f.versions
    text = f"{low}" if low == high else f"{low}+" if high == window[1] else f"{low}-{high}"
    return f"  // {text}"


def flexible_version(message):
    return message.flexible if message.flexible <= message.versions[1] else MAX_VERSION
