"""Names that only some folders may use, and words that no file may hold."""

import re
from dataclasses import dataclass

from tidy_rules.tree import Finding, is_test, line_of


@dataclass(frozen=True)
class Ban:
    names: str  # a regular expression over blanked code
    allowed: tuple  # folders below src/, or a compiled pattern for paths
    instead: str
    tests_too: bool = True


_ASIO = ("runtime/asio/",)
_SETTINGS = re.compile(r"(^|/)settings(_\w+)?\.cc$|(^|/)settings/")

BANS = [
    Ban(r"\bsteady_timer\b|\bsystem_timer\b|\bdeadline_timer\b", _ASIO,
        "sleep through Runtime; an Asio timer starts a thread of its own under the simulator"),
    Ban(r"\btcp::(?:socket|acceptor|resolver)\b|\bip::tcp\b|\bsignal_set\b|\bio_context\b", _ASIO,
        "use Stream, Listener and Connector of runtime/"),
    Ban(r"\bthread_pool\b|\bco_spawn\b|\basio::detached\b|\bdetached\b", _ASIO,
        "spawn into a TaskScope, which is closed and awaited"),
    Ban(r"\bstd::(?:thread|jthread|async)\b|\bpthread_create\b", _ASIO, "use offload and spawn of Runtime",
        tests_too=False),
    Ban(r"\b(?:system_clock|steady_clock|high_resolution_clock)\b|\b(?:clock_gettime|gettimeofday)\b|"
        r"\bstd::time\s*\(", _ASIO, "time comes from Runtime"),
    Ban(r"\bthis_thread::|\busleep\s*\(|\bnanosleep\s*\(", _ASIO,
        "sleep through Runtime", tests_too=False),
    Ban(r"\brandom_device\b|(?<![\w.>])s?rand\s*\(|\bgetrandom\s*\(|\barc4random\w*\s*\(", _ASIO,
        "random numbers come from Runtime, so that a seed replays"),
    Ban(r"\bgetenv\s*\(|\benviron\b", _SETTINGS, "settings are read in one place, a file named settings"),
    Ban(r"\bsqlite3\w*\b", ("metadata/log/",), "SQLite belongs to the metadata log's host"),
    Ban(r"\bstd::(?:o|i)?fstream\b|\bstd::filesystem\b|\b(?:fopen|fsync|fdatasync)\s*\(",
        ("runtime/asio/", "apps/"), "files are reached through FileSystem of runtime/", tests_too=False),
    Ban(r"\bstd::(?:cout|cerr|clog)\b|(?<!\w)f?printf\s*\(|\bfmt::print\s*\(", ("apps/", "sim/", "base/check.cc"),
        "log through the logger that the broker owns", tests_too=False),
    Ban(r"\bstd::(?:format|print|println)\b", (), "libstdc++ 12 has none; use fmt"),
]
# Apply gives the same on every machine: no floating point in the state machine.
STATE_BAN = Ban(r"\b(?:float|double)\b", (), "the state machine is integers only")

# Written in pieces so that this file does not hold them.
_MARKS = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
_PLACES = re.compile(r"(?<![\w.])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me)/\w|https?://[^/\s]*(?:registry|py" + r"pi|crates\."
                     r"|golang|maven|npm" + r"js|debian)[^/\s]*/")

_BUGS_FILLED = re.compile(r"\bPlantedBugs\s*(?:\w+\s*)?\{\s*[^}\s]|\b(?:planted_)?bugs_?\s*\.\s*\w+\s*=[^=]")


def check(tree):
    findings = []
    for path in tree.sources:
        code, inside = tree.code(path), path.removeprefix("src/")
        bans = BANS + ([STATE_BAN] if inside.startswith("metadata/state/") and not is_test(path) else [])
        for ban in bans:
            if _allows(ban, inside):
                continue
            for match in re.finditer(ban.names, code):
                findings.append(Finding(path, line_of(code, match.start()), "banned",
                                        f"{match.group().strip('( ')}: {ban.instead}"))
        findings += _planted_bugs(path, inside, code)
    for path in tree.paths:
        if tree.is_text(path):
            findings += _words(path, tree.text(path))
    return findings


def _allows(ban, inside):
    if is_test(inside) and not ban.tests_too:
        return True
    if isinstance(ban.allowed, re.Pattern):
        return bool(ban.allowed.search(inside))
    return inside.startswith(tuple(ban.allowed)) if ban.allowed else False


def _planted_bugs(path, inside, code):
    """Only the simulator may switch a planted bug on; elsewhere the struct stays all false."""
    if inside.startswith("sim/") or re.search(r"\bstruct\s+PlantedBugs\b", code):
        return []
    return [Finding(path, line_of(code, match.start()), "planted", "planted bugs are switched on under sim/ only")
            for match in _BUGS_FILLED.finditer(code)]


def _words(path, text):
    findings = []
    for match in _MARKS.finditer(text):
        findings.append(Finding(path, line_of(text, match.start()), "unfinished",
                                f"{match.group()}: finish it, or file an issue"))
    for match in _PLACES.finditer(text):
        findings.append(Finding(path, line_of(text, match.start()), "place",
                                f"{match.group()}: a path of one machine, or a registry's address"))
    return findings
