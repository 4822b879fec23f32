"""One field wrong at a time, for every field that the schemas have: null where nothing may be, sizes that are none, texts
that are too long, numbers at their ends."""

import copy
import struct
from dataclasses import dataclass

from differential.records import T0
from differential.scripts import script
from differential.served import BOTH, KAFKA
from harness import messages
from harness.wire import batch

ENDS = {"int8": (-2**7, 2**7 - 1), "int16": (-2**15, 2**15 - 1), "int32": (-2**31, 2**31 - 1),
        "int64": (-2**63, 2**63 - 1), "bool": (), "uuid": ()}
TEXTS = ("string", "bytes", "records")
# What a good request says where the default says nothing.
GOOD = {"GroupId": "edges-group", "Groups": "edges-group", "GroupsNames": "edges-group", "ResourceType": 2,
        "TimeoutMs": 10_000, "timeoutMs": 10_000, "ReplicaId": -1, "Acks": -1,
        "Records": batch([b"v"], timestamp=T0)}
TOPIC_FIELDS = ("Name", "Topic", "TopicName", "TopicNames", "ResourceName")
# Waits as long as it says; needs what is for transactions.
LEFT_OUT = (("Fetch", "MaxWaitMs"), ("InitProducerId", "TransactionalId"), ("Produce", "TransactionalId"))
# Kafka gives no answer at all to the first (records_of_no_size has it), the second asks for all that there is.
NO_SIZE = (("Produce", "Records"), ("DescribeLogDirs", "Topics"))
# Kafka's controller gives up on the request or does it, whichever comes first.
NO_END = (("CreateTopics", "timeoutMs"), ("CreatePartitions", "TimeoutMs"), ("DeleteTopics", "TimeoutMs"))


class Shape:
    """The fields of an API's requests in one version, and a request that has one of everything."""

    def __init__(self, api, version, topic, topic_id, epoch):
        self.api, self.version, self.topic, self.epoch = api, version, topic, epoch
        self.message = messages.load(api + "Request")
        self.structs = {one.name: one.fields for one in self.message.structs}
        self.topic_id = topic_id
        # (place in the request, field) of all that has a size or is a number, lists before what is in them.
        self.places = []
        self.good = self._struct(self.message.fields, ())

    def _has(self, field):
        return field.tag is None and field.versions[0] <= self.version <= field.versions[1]

    def may_be_null(self, field):
        return field.nullable is not None and field.nullable[0] <= self.version <= field.nullable[1]

    def _struct(self, fields, place):
        values = {}
        for field in fields:
            if self._has(field) and (self.api, field.name) not in LEFT_OUT:
                values[field.name] = self._value(field, (*place, field.name))
        return values

    def _value(self, field, place):
        if field.array:
            self.places.append((place, field))
            return [self._one(field, (*place, 0))]
        return self._one(field, place)

    def _one(self, field, place):
        if field.type in TEXTS or field.type in ENDS:
            if not field.array:
                self.places.append((place, field))
            return self._good(field)
        if not field.array and self.may_be_null(field):
            return None
        return self._struct(field.fields or self.structs[field.type], place)

    def _good(self, field):
        if field.type == "uuid":
            return self.topic_id
        if field.name in TOPIC_FIELDS and field.type == "string":
            return "nobody" if self.api == "DeleteTopics" else self.topic  # it would be done
        if field.name == "LeaderEpoch":
            return self.epoch
        if field.name in GOOD:
            return GOOD[field.name]
        if field.default == "null":
            return None
        if field.type in TEXTS:
            return "" if field.type == "string" else b""
        return field.default == "true" if field.type == "bool" else int(field.default or "0", 0)

    def changed(self, place, value):
        """The good request with another value in one place."""
        values = inner = copy.deepcopy(self.good)
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        return values

    def with_size(self, place, size):
        """The body of a good request in which the field there says that it is of another size; of none, it is not there."""
        value = self.good
        for step in place:
            value = value[step]
        if size < 0:
            value = value[:0] if value else value
        return _Writer(self.message, self.version).struct(self.message.fields, self.changed(place, Sized(value, size)))


@dataclass
class Sized:
    value: object
    says: int


class _Writer(messages.Writer):
    def value(self, field, value):
        if not isinstance(value, Sized):
            return super().value(field, value)
        if field.array:
            body = b"".join(self.one(field, item) for item in value.value)
        else:
            body = value.value.encode() if isinstance(value.value, str) else value.value or b""
        return self.size(field, value.says, "h" if field.type == "string" and not field.array else "i") + body


def header(shape):
    return struct.pack(">hhih", KAFKA[shape.api][0], shape.version, 7, 3) + b"e2e" + (
        b"\0" * (shape.version >= shape.message.flexible))


def shapes(side, topic):
    """Of each API the lowest version, the highest, and the lowest one of the compact encoding."""
    topic_id = side.topic(topic)
    for api in sorted(side.served):
        lowest, highest = BOTH[api]
        flexible = messages.load(api + "Request").flexible
        for version in sorted({lowest, highest, flexible} & set(range(lowest, highest + 1))):
            yield Shape(api, version, topic, topic_id, side.epoch)


def shown(place):
    return ".".join(str(step) for step in place if step != 0)


@script()
def sizes_that_are_none(side):
    for shape in shapes(side, "edges-of-sizes"):
        for place, field in shape.places:
            if (field.array or field.type in TEXTS) and (shape.api, field.name) not in NO_SIZE:
                sizes = {"-2": -2, "more than there is": 20_000} | ({} if shape.may_be_null(field) else {"null": -1})
                if shape.version >= shape.message.flexible and not field.inflexible:
                    del sizes["-2"]  # has no such form
                for label, size in sizes.items():
                    side.raw(shape.api, shape.version, header(shape) + shape.with_size(place, size),
                             f"{shown(place)} of {label}")


@script("Produce")
def records_of_no_size(side):
    """Null, and what Kafka takes for null: it never answers, nor anything else on the connection."""
    topic = "edges-of-records"
    topic_id = side.topic(topic)
    for version in side.versions("Produce"):
        shape = Shape("Produce", version, topic, topic_id, side.epoch)
        place, = (place for place, field in shape.places if field.name == "Records")

        def send(size, label="", hangs_on_kafka=True, shape=shape, place=place):
            side.raw("Produce", shape.version, header(shape) + shape.with_size(place, size),
                     f"{label}records of size {size}", hangs_on_kafka)
        send(20_000, hangs_on_kafka=False)  # more than there is
        for size in (-1, -2, -2**31) if version < shape.message.flexible else (-1,):
            send(size)
        shape.good["Acks"] = 0
        if version in (3, 9):
            send(-1, "acks 0, ")


@script()
def numbers_at_their_ends(side):
    for shape in shapes(side, "edges-of-numbers"):
        for place, field in shape.places:
            for value in () if (shape.api, field.name) in NO_END else ENDS.get(field.type, ()):
                at = (*place, 0) if field.array else place
                label = "least" if value < 0 else "greatest"
                side.ask(shape.api, shape.version, shape.changed(at, value), f"{shown(place)} at its {label}")


@script()
def long_texts(side):
    for shape in shapes(side, "edges-of-texts"):
        for place, field in shape.places:
            if field.type == "string":
                at = (*place, 0) if field.array else place
                side.ask(shape.api, shape.version, shape.changed(at, "t" * 32_767), f"{shown(place)} of 32767 letters")
                if shape.version >= shape.message.flexible and not field.inflexible:
                    side.ask(shape.api, shape.version, shape.changed(at, "t" * 32_768), f"{shown(place)} of 32768 letters")
                side.ask(shape.api, shape.version, shape.changed(at, "o\0dd \u00e9\U0001F600\n/"), f"{shown(place)} of odd letters")
