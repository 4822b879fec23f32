"""SaslHandshake and SaslAuthenticate, which are out of place where no listener has SASL."""

from differential.brokers import ODD_TEXTS
from differential.frames import header
from differential.scripts import script

MECHANISMS = ("PLAIN", "plain", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "EXTERNAL", "ANONYMOUS", "\0",
              "PLAIN ", "PLAIN,GSSAPI", "P" * 20, "P" * 255, "P" * 32_767, *ODD_TEXTS)
# What clients of each mechanism say first, and what none says.
TOKENS = {"nothing": b"", "a byte": b"\0", "PLAIN": b"\0user\0word", "PLAIN for another": b"other\0user\0word",
          "PLAIN without a word": b"\0user\0", "zeros": b"\0" * 64, "ones": b"\xff" * 64, "no text": b"\xc3\x28\xff\xfe",
          "SCRAM": b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL", "SCRAM, last": b"c=biws,r=fyko,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
          "OAUTHBEARER": b"n,,\x01auth=Bearer abc.def.ghi\x01\x01", "GSSAPI": b"\x60\x82\x01\x00\x06\x09",
          "a whole request": header(18, 0), "1 KiB": b"t" * 1024, "1 MiB": b"t" * 2**20}


@script("SaslHandshake")
def handshakes(side):
    for version in side.versions("SaslHandshake"):
        for index, mechanism in enumerate(MECHANISMS):
            side.ask("SaslHandshake", version, {"Mechanism": mechanism}, f"mechanism {index}")
        for index, mechanism in enumerate(MECHANISMS):
            side.ask("SaslHandshake", version, {"Mechanism": mechanism}, f"first on its connection, {index}", str(index))


@script("SaslAuthenticate")
def tokens(side):
    for version in side.versions("SaslAuthenticate"):
        for label, token in TOKENS.items():
            side.ask("SaslAuthenticate", version, {"AuthBytes": token}, label)
            side.ask("SaslAuthenticate", version, {"AuthBytes": token}, f"{label}, first on its connection", label)
    side.raw("SaslAuthenticate", 0, header(36, 0) + b"\0\0\0\0", "nothing before it")


@script("SaslHandshake", "SaslAuthenticate", "Metadata")
def whole_exchanges(side):
    """As a client does that expects SASL, and goes on when told that it is out of place."""
    for handshake in side.versions("SaslHandshake"):
        for version in side.versions("SaslAuthenticate"):
            for mechanism in ("PLAIN", "SCRAM-SHA-256"):
                on = f"{handshake} {version} {mechanism}"
                side.ask("SaslHandshake", handshake, {"Mechanism": mechanism}, f"before {version}, {mechanism}", on)
                side.ask("SaslAuthenticate", version, {"AuthBytes": TOKENS["PLAIN"]}, f"after {handshake}, {mechanism}", on)
                side.ask("SaslAuthenticate", version, {"AuthBytes": b""}, f"again, after {handshake}, {mechanism}", on)
                side.ask("SaslHandshake", handshake, {"Mechanism": mechanism}, f"again, before {version}, {mechanism}", on)
                side.ask("Metadata", 12, {"Topics": []}, f"after an exchange, {on}", on)
