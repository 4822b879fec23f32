"""What must hold after kills and outages: the judge of those tests, kept apart so that it is tested itself."""

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What a producer (clients/kill_producer.py) was told of its records."""

    sender: str
    mode: str  # "idempotent" or "plain"
    acknowledged: dict = field(default_factory=dict)  # (partition, sequence): offset; -1: only that the record is there
    failed: list = field(default_factory=list)  # lines about what the broker refused
    unanswered: list = field(default_factory=list)  # and about what it left without an answer
    said: str = ""


def violations(outcomes, records):
    """What is wrong, a line each; empty if nothing is.

    outcomes: of all producers of a topic. records: all that a reader found in it.
    """
    known = {outcome.sender for outcome in outcomes}
    wrong, offsets, of_sender = [], {}, {sender: [] for sender in known}
    for record in records:
        sender, partition, sequence, _ = record.value.decode().split(":")
        if sender not in known or int(partition) != record.partition:
            wrong.append(f"a record of {sender}, partition {partition}, stands in partition {record.partition}")
        offsets.setdefault(record.partition, []).append(record.offset)
        of_sender.setdefault(sender, []).append((record.partition, int(sequence), record.offset))
    wrong += [f"the offsets of partition {partition} have gaps" for partition, seen in offsets.items()
              if seen != list(range(len(seen)))]
    for outcome in outcomes:
        wrong += [f"{outcome.sender}: {line}" for line in _of_sender(outcome, of_sender[outcome.sender])]
    return wrong[:20]


def _of_sender(outcome, records):
    wrong = [f"never answered: {line}" for line in outcome.unanswered]
    found, order = {}, {}
    for partition, sequence, offset in records:
        found.setdefault((partition, sequence), []).append(offset)
        order.setdefault(partition, []).append(sequence)
    for place, offset in sorted(outcome.acknowledged.items()):
        if place not in found:
            wrong.append(f"{place} was acknowledged and is gone")
        elif offset >= 0 and offset not in found[place]:
            wrong.append(f"{place} was acknowledged at {offset} and stands at {found[place]}")
    for partition, sequences in order.items():
        # A plain producer may repeat what it sent, but never overtakes itself.
        firsts = list(dict.fromkeys(sequences))
        if firsts != sorted(firsts):
            wrong.append(f"partition {partition} is out of order")
    if outcome.mode == "idempotent":
        wrong += [f"{place} came {len(places)} times" for place, places in sorted(found.items()) if len(places) > 1]
        wrong += [f"refused: {line}" for line in outcome.failed]
    return wrong
