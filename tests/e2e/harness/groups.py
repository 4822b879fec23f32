"""What must hold in a consumer group: the judge of test_groups.py, kept apart so that it is tested itself."""

from typing import NamedTuple


class Span(NamedTuple):
    """The time in which a member had a partition."""
    member: str
    place: tuple  # (topic, partition)
    start: int  # ms
    end: float  # ms; infinite: it has it still
    records: list


def violations(truth, members):
    """What is wrong, a line each; empty if nothing is.

    truth: {(topic, partition): all records, by offset}. members: whatever has name, events (harness/members.py) and
    killed_at in ms or None; lag_ms, if it has that, is how late it may note an end. All have read to the end.
    """
    spans = [span for member in members for span in spans_of(member)]
    wrong = [line for member in members for line in strangers(truth, member)]
    for place, records in truth.items():
        of_place = sorted((span for span in spans if span.place == place), key=lambda span: span.start)
        seen = {record.offset for span in of_place for record in span.records}
        if missing := [record.offset for record in records if record.offset not in seen]:
            wrong.append(f"{place}: nobody read {len(missing)} records, the first at {missing[0]}")
        wrong += overlaps(of_place) + wrong_order(of_place) + wrong_starts(members, of_place)
    return wrong[:20]


def spans_of(member):
    spans, open_spans = [], {}
    lag = getattr(member, "lag_ms", 0)

    def close(place, end):
        start, records = open_spans.pop(place)
        spans.append(Span(member.name, place, start, end - lag, records))

    for event in member.events:
        if event.kind == "assigned":
            for place in set(open_spans) - set(event.places):
                close(place, event.time)
            for place in set(event.places) - set(open_spans):
                open_spans[place] = (event.time, [])
        elif event.kind == "revoked":
            for place in set(event.places) & set(open_spans):
                close(place, event.time)
        elif event.kind == "record" and (event.topic, event.record.partition) in open_spans:
            open_spans[event.topic, event.record.partition][1].append(event.record)
        elif event.kind == "left":
            for place in list(open_spans):
                close(place, event.time)
    for place in list(open_spans):
        close(place, float("inf") if member.killed_at is None else member.killed_at)
    return spans


def strangers(truth, member):
    """Records that are not what the partition holds, or that came to a member which did not have the partition."""
    spans, wrong = spans_of(member), []
    read = sum(1 for event in member.events if event.kind == "record")
    owned = sum(len(span.records) for span in spans)
    if read != owned:
        wrong.append(f"{member.name} read {read - owned} records of partitions that it did not have")
    for span in spans:
        records = {record.offset: record for record in truth.get(span.place, ())}
        wrong += [f"{member.name} read {record}, which is {records.get(record.offset)}"[:400]
                  for record in span.records if records.get(record.offset) != record]
    return wrong


def overlaps(spans):
    """spans: of one partition, by their start."""
    return [f"{first.place} was had by {first.member} until {first.end} and by {second.member} from {second.start} on"
            for first, second in zip(spans, spans[1:]) if first.end > second.start]


def wrong_order(spans):
    wrong = []
    for span in spans:
        offsets = [record.offset for record in span.records]
        if offsets != list(range(offsets[0], offsets[0] + len(offsets)) if offsets else []):
            wrong.append(f"{span.member} read {span.place} with gaps or repeats within one assignment")
    return wrong


def wrong_starts(members, spans):
    """Each owner starts where the group committed last. A commit whose answer a killed member did not live to note may
    count or not, so a start may lie between what was noted and what was read."""
    wrong = []
    for span in spans:
        if not span.records:
            continue
        committed = read = 0
        for member in members:
            for event in member.events:
                if event.time > span.start:
                    break
                if event.kind == "committed":
                    committed = max(committed, event.places.get(span.place, 0))
                elif event.kind == "record" and (event.topic, event.record.partition) == span.place:
                    read = max(read, event.record.offset + 1)
        if not committed <= span.records[0].offset <= max(read, committed):
            wrong.append(f"{span.member} began {span.place} at {span.records[0].offset}, committed was {committed}, "
                         f"read {read}")
    return wrong
