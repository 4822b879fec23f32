"""What must hold after kills: the judge of test_kill.py, kept apart so that it is tested itself."""


def violations(mode, acknowledged, failed, unanswered, records):
    """What is wrong, a line each; empty if nothing is.

    mode: "idempotent" or "plain". acknowledged: {(partition, sequence): offset}, -1 where the broker only said that it
    has the record. failed: what the broker refused. unanswered: what it left without an answer. records: all that a
    reader found, with values as clients/kill_producer.py writes them.
    """
    wrong, found, order, offsets = [f"never answered: {line}" for line in unanswered], {}, {}, {}
    for record in records:
        sender, partition, sequence, _ = record.value.decode().split(":")
        if (sender, int(partition)) != (mode, record.partition):
            wrong.append(f"a record of {sender}, partition {partition}, stands in partition {record.partition}")
        found.setdefault((record.partition, int(sequence)), []).append(record.offset)
        order.setdefault(record.partition, []).append(int(sequence))
        offsets.setdefault(record.partition, []).append(record.offset)

    for place, offset in sorted(acknowledged.items()):
        if place not in found:
            wrong.append(f"{place} was acknowledged and is gone")
        elif offset >= 0 and offset not in found[place]:
            wrong.append(f"{place} was acknowledged at {offset} and stands at {found[place]}")
    for partition, sequences in order.items():
        if offsets[partition] != list(range(len(sequences))):
            wrong.append(f"the offsets of partition {partition} have gaps")
        # A plain producer may repeat what it sent, but never overtakes itself.
        firsts = list(dict.fromkeys(sequences))
        if firsts != sorted(firsts):
            wrong.append(f"partition {partition} is out of order")
    if mode == "idempotent":
        wrong += [f"{place} came {len(places)} times" for place, places in sorted(found.items()) if len(places) > 1]
        wrong += [f"refused: {line}" for line in failed]
    return wrong[:20]
