"""Bytes that are no request, or not a whole one: who answers, and who hangs up."""

import struct

from differential.scripts import script
from differential.served import BOTH, KAFKA
from differential.side import NO_API
from harness import messages


def header(key, version, is_flexible=False, client=b"\0\3e2e"):
    return struct.pack(">hhi", key, version, 7) + client + b"\0" * is_flexible


def _least(api, version):
    """The body of a request that has every field at its default, but lists that may not be empty."""
    return messages.encode(messages.load(api + "Request"), version, {})


@script()
def broken(side):
    """Of every API and version that varve serves too: cut off, with bytes behind, of a version that is none."""
    for api in sorted(side.served):
        key = KAFKA[api][0]
        lowest, highest = BOTH[api]
        flexible = messages.load(api + "Request").flexible
        for version in range(lowest, highest + 1):
            body = _least(api, version)
            head = header(key, version, version >= flexible)
            if body:
                side.raw(api, version, head + body[:-1], "a byte short")
                side.raw(api, version, head, "no body")
            side.raw(api, version, header(key, version, False, b"\x7f\xff"), "client id longer than the request")
            side.raw(api, version, struct.pack(">hh", key, version), "half a header")
            if version >= flexible:
                side.raw(api, version, header(key, version) + b"\1\0" + body, "a tag in the header without its size")
        for version in (-1, highest + 1, 99, 32767, -32768):
            side.raw(api, version, header(key, version) + b"\0" * 40, "no such version")


@script()
def no_requests(side):
    for label, frame in (("nothing", b""), ("a byte", b"\0"), ("two bytes", b"\0\3"), ("an unknown key", header(9999, 0)),
                         ("key -1", header(-1, 0)), ("zeros", b"\0" * 100), ("letters", b"GET / HTTP/1.1\r\n\r\n"),
                         ("no client id", header(18, 0, client=b"\xff\xff")), ("client id of -2", header(18, 0, client=b"\xff\xfe")),
                         ("a client id that is no text", header(18, 0, client=b"\0\2\xff\xfe")),
                         ("an API of controllers", header(52, 0) + b"\0" * 20), ("an API of brokers", header(4, 0)),
                         ("a SASL token alone", b"\0user\0word")):
        side.raw(NO_API, 0, frame, label)
    for size in (-1, -2**31, 2**31 - 1, 104_857_601):
        side.raw_bytes(NO_API, 0, struct.pack(">i", size) + b"x" * 50, f"a frame of {size}")
    side.raw_bytes(NO_API, 0, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP")
    side.raw_bytes(NO_API, 0, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, "TLS")


@script("Metadata")
def odd_headers(side):
    body = messages.encode(messages.load("MetadataRequest"), 12, {"Topics": []})
    for label, tags in (("none", b"\0"), ("one unknown", b"\1\x05\2ab"), ("the same twice", b"\2\5\1a\5\1b"),
                        ("falling", b"\2\6\1a\5\1b"), ("an empty one", b"\1\5\0"), ("more than there are", b"\7\5\0")):
        side.raw("Metadata", 12, header(3, 12) + tags + body, f"header tags: {label}")
        side.raw("Metadata", 12, header(3, 12, True) + body[:-1] + tags, f"body tags: {label}")
    for label, client in (("null", b"\xff\xff"), ("empty", b"\0\0"), ("long", b"\x03\xe8" + b"c" * 1000),
                          ("odd", b"\0\4a\n\0b")):
        side.raw("Metadata", 12, header(3, 12, True, client) + body, f"client id: {label}")
    side.raw("Metadata", 12, header(3, 12, True) + body + b"zz", "bytes behind")
    side.raw("Metadata", 4, header(3, 4) + struct.pack(">i", 2**31 - 1) + b"\0", "a list longer than the request")
    side.raw("Metadata", 4, header(3, 4) + struct.pack(">i", -2) + b"\0", "a list of -2")
    side.raw("Metadata", 12, header(3, 12, True) + b"\xff\xff\xff\xff\xff\xff", "a size of too many bytes")
    side.raw("Metadata", 4, header(3, 4) + struct.pack(">ih", 1, -1) + b"\0", "a name that is null")
    side.raw("Metadata", 4, header(3, 4) + struct.pack(">ih", 1, 2) + b"\xff\xfe\0", "a name that is no text")
    side.raw("Metadata", 4, header(3, 4) + struct.pack(">i", 0) + b"\7", "a flag of 7")
