"""Any request in any version, as a dict, by the schema files that the broker's own codecs are generated from.

    ask(connection, "Metadata", 12, {"Topics": None})

Fields that are left out have their defaults. A reply is a dict too, without the fields that its version does not
have. For tests that want each version, or that want to be odd; harness/wire.py has the usual requests.
"""

import functools
import struct
import sys
import uuid

from harness.places import ROOT
from harness.wire import uvarint

sys.path.insert(0, str(ROOT / "src" / "protocol" / "generator"))
import schema  # noqa: E402

_NUMBERS = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
            "float64": "d"}
_ZERO_UUID = uuid.UUID(int=0)


@functools.lru_cache(None)
def load(name):
    return schema.load(ROOT / "src" / "protocol" / "schemas" / f"{name}.schema")


def versions(api):
    """(lowest, highest) that varve serves."""
    return load(api + "Request").versions


def send(connection, api, version, values):
    """Sends the request and gives its correlation id."""
    message = load(api + "Request")
    return connection.send(message.api, version, encode(message, version, values), version >= message.flexible)


def receive(connection, api, version):
    """(correlation id, reply)."""
    correlation, reader = connection.receive()
    message = load(api + "Response")
    data = reader.rest()
    # A flexible reply's header ends with tagged fields, but for ApiVersions (KIP-511).
    if version >= message.flexible and api != "ApiVersions":
        assert data[0] == 0, "a tagged field in the header"
        data = data[1:]
    return correlation, decode(message, version, data)


def ask(connection, api, version, values):
    sent = send(connection, api, version, values)
    received, reply = receive(connection, api, version)
    assert sent == received, f"reply {received} to request {sent}"
    return reply


def encode(message, version, values):
    return Writer(message, version).struct(message.fields, values)


def decode(message, version, data):
    reader = _Reader(message, version, data)
    values = reader.struct(message.fields)
    assert reader.at == len(data), f"{len(data) - reader.at} bytes behind a {message.name} of version {version}"
    return values


def _in(range_, version):
    return range_ is not None and range_[0] <= version <= range_[1]


def _default(field):
    if field.array:
        return None if field.default == "null" else []
    if field.type == "string":
        return None if field.default == "null" else field.default or ""
    if field.type in ("bytes", "records") or field.default == "null":
        return None if field.default == "null" or field.nullable else b""
    if field.type == "uuid":
        return _ZERO_UUID
    if field.type == "bool":
        return field.default == "true"
    if field.type in _NUMBERS:
        return int(field.default or "0", 0)
    return {}


class _Codec:
    def __init__(self, message, version):
        self.message, self.version = message, version
        self.structs = {one.name: one.fields for one in message.structs}

    def is_flexible(self, field):
        return self.version >= self.message.flexible and not field.inflexible

    def fields_of(self, field):
        return field.fields or self.structs[field.type]


class Writer(_Codec):
    """Writes dicts; a test may have one of its own that writes something in an odd way."""

    def struct(self, fields, values):
        unknown = set(values) - {field.name for field in fields}
        assert not unknown, f"no such field: {unknown}"
        out, tags = b"", {}
        for field in fields:
            if not _in(field.versions, self.version):
                continue
            value = values.get(field.name, _default(field))
            if field.tag is None:
                out += self.value(field, value)
            elif field.name in values:
                tags[field.tag] = self.value(field, value)
        if self.version >= self.message.flexible:
            out += uvarint(len(tags))
            for tag, data in sorted(tags.items()):
                out += uvarint(tag) + uvarint(len(data)) + data
        return out

    def value(self, field, value):
        if not field.array:
            return self.one(field, value)
        items = b"".join(self.one(field, item) for item in value or ())
        return self.size(field, None if value is None else len(value), "i") + items

    def one(self, field, value):
        if field.type in _NUMBERS:
            return struct.pack(">" + _NUMBERS[field.type], value)
        if field.type == "uuid":
            return value.bytes
        if field.type in ("string", "bytes", "records"):
            data = value.encode() if isinstance(value, str) else value
            return self.size(field, None if data is None else len(data), "h" if field.type == "string" else "i") + (
                data or b"")
        present = b"" if field.array or not _in(field.nullable, self.version) else b"\xff" if value is None else b"\1"
        return present + (b"" if value is None else self.struct(self.fields_of(field), value))

    def size(self, field, size, layout):
        if self.is_flexible(field):
            return uvarint(0 if size is None else size + 1)
        return struct.pack(">" + layout, -1 if size is None else size)


class _Reader(_Codec):
    def __init__(self, message, version, data):
        super().__init__(message, version)
        self.data, self.at = data, 0

    def struct(self, fields):
        values = {field.name: self.value(field) for field in fields
                  if field.tag is None and _in(field.versions, self.version)}
        if self.version >= self.message.flexible:
            tagged = {field.tag: field for field in fields
                      if field.tag is not None and _in(field.versions, self.version)}
            for _ in range(self.uvarint()):
                tag, size = self.uvarint(), self.uvarint()
                end = self.at + size
                if tag in tagged:
                    values[tagged[tag].name] = self.value(tagged[tag])
                    assert self.at == end, f"the tagged field {tagged[tag].name} is not as long as it says"
                self.at = end
        return values

    def value(self, field):
        if not field.array:
            return self.one(field)
        count = self.size(field, "i")
        return None if count is None else [self.one(field) for _ in range(count)]

    def one(self, field):
        if field.type in _NUMBERS:
            return self.number(_NUMBERS[field.type])
        if field.type == "uuid":
            return uuid.UUID(bytes=self.take(16))
        if field.type in ("string", "bytes", "records"):
            size = self.size(field, "h" if field.type == "string" else "i")
            data = None if size is None else self.take(size)
            return data.decode(errors="backslashreplace") if data is not None and field.type == "string" else data
        if not field.array and _in(field.nullable, self.version) and self.number("b") < 0:
            return None
        return self.struct(self.fields_of(field))

    def size(self, field, layout):
        size = self.uvarint() - 1 if self.is_flexible(field) else self.number(layout)
        return None if size < 0 else size

    def number(self, layout):
        return struct.unpack(">" + layout, self.take(struct.calcsize(">" + layout)))[0]

    def uvarint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, size):
        assert self.at + size <= len(self.data), "the reply ends too early"
        self.at += size
        return self.data[self.at - size:self.at]
