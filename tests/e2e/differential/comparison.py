"""What differs between two records, and which of that docs/differences.md lists."""

import re
from dataclasses import dataclass, field
from itertools import zip_longest

from differential.words import key_of
from harness.places import ROOT

DOCUMENT = ROOT / "docs" / "differences.md"
_COLUMNS = ("API", "versions", "field", "when", "Apache Kafka", "varve", "why")
_ABSENT = "absent"


@dataclass(frozen=True)
class Difference:
    step: object
    path: str
    kafka: object
    varve: object

    @property
    def kind(self):
        """The same for differences that are likely one, seen by several requests."""
        return (self.step.api, self.step.script, re.sub(r"\[[^]]*-\d[^]]*\]", "[...]", self.path), _short(self.kafka),
                _short(self.varve))


@dataclass
class Row:
    """A listed difference: patterns, in which * is any text."""

    line: int
    api: str
    versions: tuple
    path: str
    when: str
    kafka: str
    varve: str
    used: int = field(default=0, compare=False)

    def covers(self, difference):
        step = difference.step
        return (_fits(self.api, step.api) and self.versions[0] <= step.version <= self.versions[1] and
                _fits(self.path, difference.path) and _fits(self.when, step.label.partition(" #")[0].strip()) and
                _fits(self.kafka, _short(difference.kafka)) and _fits(self.varve, _short(difference.varve)))


def compare(kafka, varve):
    """(step, its differences) for each pair of steps. Where a script did not go on alike, what follows of it belongs to
    different requests, and only the next one is compared again."""
    theirs, ours = _by_script(kafka), _by_script(varve)
    for script in dict.fromkeys([*theirs, *ours]):
        for one, other in zip_longest(theirs.get(script, ()), ours.get(script, ())):
            if one is None or other is None or (one.name, one.api, one.version) != (other.name, other.api, other.version):
                step = one or other
                yield step, [Difference(step, "", one and one.answer, other and other.answer)]
                break
            yield one, [Difference(one, *rest) for rest in _differences("", one.api, one.answer, other.answer)]


def _by_script(steps):
    scripts = {}
    for step in steps:
        scripts.setdefault(step.script, []).append(step)
    return scripts


def _differences(path, api, kafka, varve):
    if isinstance(kafka, dict) and isinstance(varve, dict) and ("answer" in kafka) == ("answer" in varve):
        error, other = kafka.get("ErrorCode"), varve.get("ErrorCode")
        if error != other:  # the rest follows from it
            yield f"{path}.ErrorCode" if path else "ErrorCode", error, other
            return
        for name in dict.fromkeys([*kafka, *varve]):
            yield from _differences(f"{path}.{name}" if path else name, api, kafka.get(name, _ABSENT),
                                    varve.get(name, _ABSENT))
    elif isinstance(kafka, list) and isinstance(varve, list):
        yield from _of_lists(path, api, kafka, varve)
    elif kafka != varve or type(kafka) is not type(varve):
        yield path, kafka, varve


def _of_lists(path, api, kafka, varve):
    keys = key_of(api, path.rpartition(".")[2])
    if keys:
        ours, theirs = ({_key(keys, item): item for item in items} for items in (varve, kafka))
        if len(ours) == len(varve) and len(theirs) == len(kafka):
            for key in sorted({*ours, *theirs}):
                yield from _differences(f"{path}[{key}]", api, theirs.get(key, _ABSENT), ours.get(key, _ABSENT))
            return
    if len(kafka) != len(varve):
        yield path, kafka, varve
        return
    for one, other in zip(kafka, varve):
        yield from _differences(path, api, one, other)


def _key(keys, item):
    """Of a name and an id, the first that an item has; of a kind and a name, both."""
    if "ResourceName" in keys:
        return f"{item['ResourceType']} {item['ResourceName']}"
    return next((str(item[key]) for key in keys if item.get(key) not in (None, "<no id>")), "")


def describe(differences):
    """Text for people, one paragraph for each kind."""
    kinds = {}
    for difference in differences:
        kinds.setdefault(difference.kind, []).append(difference)
    for (api, script, path, kafka, varve), same in kinds.items():
        versions = ",".join(map(str, sorted({one.step.version for one in same})))
        labels = list(dict.fromkeys(one.step.label.partition(" #")[0] for one in same))
        more = f" and {len(labels) - 6} more" if len(labels) > 6 else ""
        yield (f"{api} v{versions} [{script}: {' | '.join(labels[:6])}{more}] {path}\n    kafka: {kafka}\n"
               f"    varve: {varve}\n    request: {same[0].step.request}")


def listed(text=None):
    """The rows of all tables of the document, or of another text."""
    rows = []
    for number, line in enumerate((DOCUMENT.read_text() if text is None else text).splitlines(), 1):
        cells = [cell.strip().strip("`").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != len(_COLUMNS) or cells[0] == _COLUMNS[0] or set(cells[0]) <= set("-:"):
            continue
        row = Row(number, cells[0], _versions(cells[1]), *cells[2:6])
        place = f"line {number} of {DOCUMENT.name}"
        assert cells[-1], f"{place} gives no reason"
        # Else whatever varve answers is listed, also what it answers by mistake.
        assert row.varve == "" or set(row.varve) != {"*"}, f"{place} does not say what varve answers"
        assert (row.path, row.when) != ("*", "*"), f"{place} is about everything"
        rows.append(row)
    return rows


def _versions(text):
    if text == "all":
        return -32768, 32767
    low, _, high = text.rstrip("+").partition("-")
    return int(low), 32767 if text.endswith("+") else int(high or low)


def _fits(pattern, text):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def _short(value):
    if value is None:
        return "null"
    text = str(value)
    return text if len(text) <= 400 else text[:400] + "..."
