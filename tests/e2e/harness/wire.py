"""Kafka's protocol by hand: the few requests that tests want to send at an exact moment, damaged, or out of order.

Fixed old versions without flexible fields, which every broker of today serves; real clients cover the newer ones.
"""

import socket
import struct
import time
import zlib

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH = 0, 1, 2, 3, 8, 9
JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 18, 19, 20
NONE, OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION, UNSUPPORTED_VERSION = 0, 1, 2, 3, 35
# Errors after which a client tries again by itself.
RETRIABLE = {2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 41, 52, 56, 71, 78, 84, 88, 89}


def _crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def uvarint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(value):
    return uvarint((value << 1) ^ (value >> 63))


def _varint_bytes(data):
    return _varint(-1) if data is None else _varint(len(data)) + data


def batch(values, producer_id=-1, producer_epoch=-1, sequence=-1, timestamp=None):
    """A record batch of format 2, not compressed, with these values and no keys."""
    timestamp = int(time.time() * 1000) if timestamp is None else timestamp
    records = b""
    for delta, value in enumerate(values):
        record = b"\0" + _varint(0) + _varint(delta) + _varint_bytes(None) + _varint_bytes(value) + _varint(0)
        records += _varint(len(record)) + record
    after_crc = struct.pack(">hiqqqhii", 0, len(values) - 1, timestamp, timestamp, producer_id, producer_epoch,
                            sequence, len(values)) + records
    after_length = struct.pack(">ibI", -1, 2, crc32c(after_crc)) + after_crc
    return struct.pack(">qi", 0, len(after_length)) + after_length


def old_message(value, magic):
    """One message of the formats before batches, magic 0 or 1."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 0) if magic == 1 else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def _string(text):
    if text is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(text.encode())) + text.encode()


class Reader:
    """Takes fields off the front of a response."""

    def __init__(self, data):
        self._data, self._at = data, 0

    def take(self, layout):
        values = struct.unpack_from(">" + layout, self._data, self._at)
        self._at += struct.calcsize(">" + layout)
        return values[0] if len(values) == 1 else values

    def string(self):
        return self._raw(self.take("h"))

    def bytes(self):
        return self._raw(self.take("i"))

    def _raw(self, size):
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size:self._at]

    def rest(self):
        return self._data[self._at:]

    def array(self, item):
        return [item() for _ in range(max(self.take("i"), 0))]


def insist(call, seconds=60):
    """Calls until the error that it gives, alone or first, is none after which a client tries again; gives the last."""
    deadline = time.monotonic() + seconds
    while True:
        answer = call()
        if (answer[0] if isinstance(answer, tuple) else answer) not in RETRIABLE or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


class Connection:
    """One connection; requests may be sent before the replies to earlier ones are read."""

    def __init__(self, port, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.socket.close()

    def send(self, api, version, body, is_flexible=False):
        """Sends a request and gives its correlation id. A flexible header ends with tagged fields, here none."""
        self._last_id += 1
        frame = struct.pack(">hhi", api, version, self._last_id) + _string("e2e") + b"\0" * is_flexible + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self._last_id

    def receive(self):
        """(correlation id, Reader over the body) of the next reply; raises EOFError if the broker hung up."""
        size, = struct.unpack(">i", self._exactly(4))
        frame = self._exactly(size)
        return struct.unpack(">i", frame[:4])[0], Reader(frame[4:])

    def call(self, api, version, body):
        sent = self.send(api, version, body)
        received, reader = self.receive()
        assert sent == received, f"reply {received} to request {sent}"
        return reader

    def is_closed(self):
        """Whether the broker closes the connection (within the timeout) without sending anything more."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            try:
                part = self.socket.recv(size - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                raise EOFError("the broker closed the connection")
            data += part
        return data

    def send_produce(self, topic, partition, records, acks=-1, version=7):
        body = _string(None) + struct.pack(">hii", acks, 10_000, 1) + _string(topic)
        return self.send(PRODUCE, version, body + struct.pack(">iii", 1, partition, len(records)) + records)

    def send_produce_many(self, topic, batches, acks=-1):
        """One request for (partition, records) each."""
        body = _string(None) + struct.pack(">hii", acks, 10_000, 1) + _string(topic) + struct.pack(">i", len(batches))
        for partition, records in batches:
            body += struct.pack(">ii", partition, len(records)) + records
        return self.send(PRODUCE, 7, body)

    @staticmethod
    def read_produce_many(reader):
        """{partition: (error, base offset)} of a produce reply for one topic."""
        reader.take("i")
        reader.string()
        rows = reader.array(lambda: reader.take("ihqqq"))
        return {partition: (error, offset) for partition, error, offset, _, _ in rows}

    @staticmethod
    def read_produce(reader):
        """(error, base offset) of a produce reply for one partition."""
        reader.take("i")
        reader.string()
        _, _, error, offset, _, _ = reader.take("iihqqq")
        return error, offset

    def produce(self, topic, partition, records, acks=-1, version=7):
        self.send_produce(topic, partition, records, acks, version)
        return self.read_produce(self.receive()[1])

    def create_topic(self, topic, partitions=1, configs=()):
        body = struct.pack(">i", 1) + _string(topic) + struct.pack(">ihii", partitions, 1, 0, len(configs))
        body += b"".join(_string(name) + _string(value) for name, value in configs) + struct.pack(">ib", 10_000, 0)
        reader = self.call(CREATE_TOPICS, 4, body)
        _, _ = reader.take("ii")
        reader.string()
        return reader.take("h")

    def delete_topic(self, topic):
        reader = self.call(DELETE_TOPICS, 3, struct.pack(">i", 1) + _string(topic) + struct.pack(">i", 10_000))
        _, _ = reader.take("ii")
        reader.string()
        return reader.take("h")

    def metadata(self, topic, create=True):
        """Error of the topic; asks for its creation."""
        body = struct.pack(">i", 1) + _string(topic) + struct.pack(">b", create)
        reader = self.call(METADATA, 4, body)
        reader.take("i")
        reader.array(lambda: (reader.take("i"), reader.string(), reader.take("i"), reader.string()))
        reader.string()
        reader.take("ii")
        return reader.take("h")

    def list_offset(self, topic, partition, timestamp=-1):
        """(error, offset); -1: the end, -2: the start."""
        body = struct.pack(">ibi", -1, 0, 1) + _string(topic) + struct.pack(">iiq", 1, partition, timestamp)
        reader = self.call(LIST_OFFSETS, 2, body)
        reader.take("ii")
        reader.string()
        _, _, error, _, offset = reader.take("iihqq")
        return error, offset

    def join_group(self, group, session_ms):
        """(error, generation, member) of a first JoinGroup."""
        body = _string(group) + struct.pack(">ii", session_ms, session_ms) + _string("") + _string("consumer")
        reader = self.call(JOIN_GROUP, 3, body + struct.pack(">i", 1) + _string("range") + struct.pack(">i", 0))
        _, error, generation = reader.take("ihi")
        _, _, member = reader.string(), reader.string(), reader.string()
        return error, generation, member.decode()

    def sync_group(self, group, generation, member, assignment):
        """(error, assignment) of the leader's SyncGroup, which gives one to itself alone."""
        body = _string(group) + struct.pack(">i", generation) + _string(member) + struct.pack(">i", 1) + _string(member)
        reader = self.call(SYNC_GROUP, 2, body + struct.pack(">i", len(assignment)) + assignment)
        return reader.take("ih")[1], reader.bytes()

    def heartbeat(self, group, generation, member):
        body = _string(group) + struct.pack(">i", generation) + _string(member)
        return self.call(HEARTBEAT, 2, body).take("ih")[1]

    def commit(self, group, generation, member, topic, partition, offset):
        """The error of an OffsetCommit."""
        body = _string(group) + struct.pack(">i", generation) + _string(member) + struct.pack(">qi", -1, 1)
        body += _string(topic) + struct.pack(">iiq", 1, partition, offset) + _string("")
        reader = self.call(OFFSET_COMMIT, 3, body)
        reader.take("ii")
        reader.string()
        return reader.take("iih")[2]

    def committed(self, group, topic, partitions):
        """(error, {(topic, partition): offset}) of what the group has committed; -1: none."""
        body = _string(group) + struct.pack(">i", 1) + _string(topic) + struct.pack(">i", partitions)
        reader = self.call(OFFSET_FETCH, 5, body + struct.pack(f">{partitions}i", *range(partitions)))
        reader.take("i")
        found, errors = {}, []

        def row():
            partition, offset, _ = reader.take("iqi")
            found[topic, partition] = offset
            reader.string()
            errors.append(reader.take("h"))

        reader.array(lambda: (reader.string(), reader.array(row)))
        return max([reader.take("h"), *errors]), found

    def send_fetch(self, places, max_wait_ms=500, min_bytes=1):
        """Asks for (topic, partition, offset) each."""
        body = struct.pack(">iiiibi", -1, max_wait_ms, min_bytes, 50_000_000, 0, len(places))
        for topic, partition, offset in places:
            body += _string(topic) + struct.pack(">iiqi", 1, partition, offset, 10_000_000)
        return self.send(FETCH, 4, body)

    @staticmethod
    def read_fetch(reader):
        """{(topic, partition): (error, high watermark, records)}."""
        reader.take("i")
        found = {}

        def topic():
            name = reader.string().decode()

            def partition():
                index, error, high_watermark, _ = reader.take("ihqq")
                reader.array(lambda: reader.take("qq"))
                found[name, index] = (error, high_watermark, reader.bytes() or b"")

            reader.array(partition)

        reader.array(topic)
        return found

    def fetch(self, topic, partition, offset, max_wait_ms=500):
        self.send_fetch([(topic, partition, offset)], max_wait_ms)
        return self.read_fetch(self.receive()[1])[topic, partition]

    def fetch_session(self, session, epoch, places=(), forgotten=(), version=10, max_wait_ms=0):
        """(error, session, {(topic, partition): (error, high watermark, records)}) of a Fetch within a session.

        Asks for (topic, partition, offset) each, forgets (topic, partition) each. Versions 9 to 11.
        """
        body = struct.pack(">iiiibiii", -1, max_wait_ms, 1, 50_000_000, 0, session, epoch, len(places))
        for topic, partition, offset in places:
            body += _string(topic) + struct.pack(">iiiqqi", 1, partition, -1, offset, -1, 10_000_000)
        body += struct.pack(">i", len(forgotten))
        for topic, partition in forgotten:
            body += _string(topic) + struct.pack(">ii", 1, partition)
        if version >= 11:
            body += _string("")
        reader = self.call(FETCH, version, body)
        _, error, session = reader.take("ihi")
        found = {}

        def topic_rows():
            name = reader.string().decode()

            def row():
                index, row_error, high_watermark, _, _ = reader.take("ihqqq")
                reader.array(lambda: reader.take("qq"))
                if version >= 11:
                    reader.take("i")
                found[name, index] = (row_error, high_watermark, reader.bytes() or b"")

            reader.array(row)

        reader.array(topic_rows)
        return error, session, found

    def api_versions(self, version=0):
        """(error, {api: (lowest, highest)}). From version 3 on the header ends with tagged fields, here none."""
        reader = self.call(API_VERSIONS, version, b"" if version < 3 else b"\0")
        error = reader.take("h")
        return error, {api: (low, high) for api, low, high in reader.array(lambda: reader.take("hhh"))}


def codecs_of(records):
    """The codec of each record batch, as in record_lines.CODECS; a batch cut off at the end is left out."""
    codecs, at = [], 0
    while at + 61 <= len(records):
        size, = struct.unpack_from(">i", records, at + 8)
        codecs.append(records[at + 22] & 7)
        at += 12 + size
    return codecs


def values_of(records):
    """The values in uncompressed record batches, in order; a batch cut off at the end is left out."""
    values, at = [], 0
    while at + 61 <= len(records):
        size, = struct.unpack_from(">i", records, at + 8)
        end = at + 12 + size
        if end > len(records):
            break
        count, = struct.unpack_from(">i", records, at + 57)
        position = at + 61
        for _ in range(count):
            _, position = _read_varint(records, position)
            position += 1
            for _ in range(2):
                _, position = _read_varint(records, position)
            key_size, position = _read_varint(records, position)
            position += max(key_size, 0)
            value_size, position = _read_varint(records, position)
            values.append(records[position:position + value_size] if value_size >= 0 else None)
            position += max(value_size, 0)
            headers, position = _read_varint(records, position)
            assert headers == 0, "this reader knows no headers"
        at = end
    return values


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
