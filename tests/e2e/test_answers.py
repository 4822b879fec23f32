"""Requests of every version, and odd ones, are answered as Apache Kafka 4.4.0 answers them. Holds for Kafka too."""

import struct
import time
import uuid

from differential import served
from harness import wire
from harness.messages import ask, versions
from harness.one_broker import OneBroker
from harness.wire import Connection, batch

INVALID_TOPIC, UNSUPPORTED_VERSION, INVALID_REQUEST, INVALID_RECORD = 17, 35, 42, 87
FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, UNKNOWN_TOPIC_ID = 70, 71, 100
MISMATCHED_ENDPOINT_TYPE, REBOOTSTRAP_REQUIRED = 114, 129

# What Kafka 4.4.0 lists for the APIs that varve serves; 0 to 2 of Produce it lists and refuses.
KAFKA_VERSIONS = {api: served.KAFKA[api] for api in served.of_varve()}
SOFTWARE = {"ClientSoftwareName": "e2e", "ClientSoftwareVersion": "1.0"}
NO_ID = uuid.UUID(int=0)


def by_name(*names):
    return [{"Name": name, "TopicId": NO_ID} for name in names]


def by_id(*ids):
    return [{"Name": None, "TopicId": topic_id} for topic_id in ids]


class Answers(OneBroker):
    def setUp(self):
        self.connection = self.connect()

    def ask(self, api, version, **values):
        return ask(self.connection, api, version, values)

    def topic(self, partitions=1, suffix="", **configs):
        """(name, id) of a new topic that is ready."""
        name = self.id().rpartition(".")[2][:200] + suffix
        self.make_topic(self.connection, name, partitions, configs)
        row, = self.ask("Metadata", 12, Topics=by_name(name))["Topics"]
        return name, row["TopicId"]

    def produce(self, version, name, topic_id, records, acks=-1, partition=0):
        reply = self.ask("Produce", version, Acks=acks, TimeoutMs=10_000, TopicData=[
            {"Name": name, "TopicId": topic_id, "PartitionData": [{"Index": partition, "Records": records}]}])
        return reply["Responses"][0]["PartitionResponses"][0]

    def fetch(self, version, name, topic_id, offset=0, **values):
        reply = self.ask("Fetch", version, MaxWaitMs=100, MinBytes=1, **values, Topics=[
            {"Topic": name, "TopicId": topic_id,
             "Partitions": [{"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": 1_000_000}]}])
        return reply["Responses"][0]["Partitions"][0]

    def raw(self, body):
        """The whole reply to a frame, None if the broker hangs up. On a connection of its own."""
        with Connection(self.broker.port, 20) as connection:
            connection.socket.sendall(struct.pack(">i", len(body)) + body)
            try:
                correlation, reader = connection.receive()
            except EOFError:
                return None
            self.assertEqual(7, correlation)
            return reader.rest()

    @staticmethod
    def header(api, version, is_flexible=False):
        return struct.pack(">hhih", api, version, 7, -1) + b"\0" * is_flexible

    # Versions

    def test_the_versions_listed_are_those_of_kafka_4_4_and_the_older_ones(self):
        listed = self.connection.api_versions()[1]
        for api, (key, lowest, highest) in KAFKA_VERSIONS.items():
            if self.broker.name == "varve":
                # Older ones, which the newest 3.9 has, are served too.
                lowest = min(lowest, versions(api)[0])
            self.assertEqual((lowest, highest), listed[key], api)
        if self.broker.name == "varve":
            self.assertEqual({key for key, _, _ in KAFKA_VERSIONS.values()}, set(listed))

    def served(self, api):
        lowest, highest = versions(api)
        self.assertEqual(KAFKA_VERSIONS[api][2], highest)
        return range(lowest if self.broker.name == "varve" else max(lowest, KAFKA_VERSIONS[api][1]), highest + 1)

    def test_every_version_of_every_api_is_answered(self):
        for version in self.served("ApiVersions"):
            self.assertEqual(0, self.ask("ApiVersions", version, **(SOFTWARE if version >= 3 else {}))["ErrorCode"])
        for version in self.served("DescribeCluster"):
            reply = self.ask("DescribeCluster", version)
            self.assertEqual((0, 1), (reply["ErrorCode"], len(reply["Brokers"])))
        name, topic_id = self.topic()
        for version in self.served("Metadata"):
            row, = self.ask("Metadata", version, Topics=by_name(name))["Topics"]
            self.assertEqual((0, name, 1), (row["ErrorCode"], row["Name"], len(row["Partitions"])))
            self.assertEqual(topic_id, row.get("TopicId", topic_id))
        produced = self.served("Produce")
        for version in produced:
            self.assertEqual(0, self.produce(version, name, topic_id, batch([b"%d" % version]))["ErrorCode"], version)
        for version in self.served("Fetch"):
            row = self.fetch(version, name, topic_id)
            self.assertEqual((0, len(produced)), (row["ErrorCode"], row["HighWatermark"]), version)
            self.assertEqual([b"%d" % of for of in produced], wire.values_of(row["Records"]), version)
        for version in self.served("ListOffsets"):
            row, = self.ask("ListOffsets", version, ReplicaId=-1, Topics=[
                {"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}])["Topics"][0]["Partitions"]
            found = row["OldStyleOffsets"] if version == 0 else [row["Offset"]]
            self.assertEqual((0, [len(produced)]), (row["ErrorCode"], found), version)

    def test_every_version_finds_the_coordinator_of_a_group(self):
        here, = self.ask("Metadata", 12, Topics=[])["Brokers"]
        for version in self.served("FindCoordinator"):
            deadline = time.monotonic() + 30
            while True:
                reply = self.ask("FindCoordinator", version,
                                 **({"Key": "g"} if version < 4 else {"CoordinatorKeys": ["g", "h"]}))
                rows = [reply] if version < 4 else reply["Coordinators"]
                if rows[0]["ErrorCode"] != 15:  # COORDINATOR_NOT_AVAILABLE: Kafka makes its offsets topic
                    break
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            for row in rows:
                self.assertEqual((0, here["NodeId"], here["Host"], here["Port"]),
                                 (row["ErrorCode"], row["NodeId"], row["Host"], row["Port"]), version)
            self.assertEqual(["g", "h"] if version >= 4 else [None], [row.get("Key") for row in rows])

    def test_a_coordinator_of_an_unknown_kind_is_an_invalid_request(self):
        for kind in (2, 9, -1):
            self.assertEqual(INVALID_REQUEST, self.ask("FindCoordinator", 3, Key="g", KeyType=kind)["ErrorCode"])
            row, = self.ask("FindCoordinator", 6, CoordinatorKeys=["g"], KeyType=kind)["Coordinators"]
            self.assertEqual((INVALID_REQUEST, -1, "", -1),
                             (row["ErrorCode"], row["NodeId"], row["Host"], row["Port"]))

    def test_every_version_makes_and_deletes_topics(self):
        for version in self.served("CreateTopics"):
            row, = self.ask("CreateTopics", version, timeoutMs=10_000, Topics=[
                {"Name": f"made-{version}", "NumPartitions": 1, "ReplicationFactor": 1}])["Topics"]
            self.assertEqual(0, row["ErrorCode"], version)
        for version in self.served("DeleteTopics"):
            names = {"Topics": by_name(f"made-{version}")} if version >= 6 else {"TopicNames": [f"made-{version}"]}
            if version in self.served("CreateTopics"):
                self.assertEqual(0, self.ask("DeleteTopics", version, TimeoutMs=10_000, **names)["Responses"][0][
                    "ErrorCode"], version)

    def test_every_version_gives_a_producer_id(self):
        for version in self.served("InitProducerId"):
            deadline = time.monotonic() + 30
            while True:
                reply = self.ask("InitProducerId", version, TransactionalId=None, TransactionTimeoutMs=1000)
                if reply["ErrorCode"] != 14:  # COORDINATOR_LOAD_IN_PROGRESS: Kafka fetches a block of them
                    break
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            self.assertEqual((0, 0), (reply["ErrorCode"], reply["ProducerEpoch"]), version)
            self.assertGreaterEqual(reply["ProducerId"], 0)

    # ApiVersions

    def test_c001_an_unknown_version_of_api_versions_gets_error_35_and_its_own_versions_in_version_0(self):
        answer = struct.pack(">hihhh", UNSUPPORTED_VERSION, 1, wire.API_VERSIONS, 0, 5)
        for body in (self.header(18, 9, True) + b"\2x\2" + b"1\0", self.header(18, 99, True), self.header(18, -1)):
            self.assertEqual(answer, self.raw(body))
        # The connection stays.
        self.assertEqual(UNSUPPORTED_VERSION, self.connection.api_versions(version=9)[0])
        self.assertEqual(0, self.connection.api_versions()[0])

    def test_a_software_name_that_is_none_is_an_invalid_request_without_a_list(self):
        for name in ("", "-x", "a b"):
            reply = self.ask("ApiVersions", 3, ClientSoftwareName=name, ClientSoftwareVersion="1")
            self.assertEqual((INVALID_REQUEST, []), (reply["ErrorCode"], reply["ApiKeys"]), name)

    def test_a_client_that_meant_another_broker_is_told_to_start_over(self):
        here = self.ask("Metadata", 12, Topics=[])
        cluster, node = here["ClusterId"], here["Brokers"][0]["NodeId"]
        for values, error in (({"ClusterId": cluster, "NodeId": node}, wire.NONE), ({}, wire.NONE),
                              ({"ClusterId": "another", "NodeId": node}, REBOOTSTRAP_REQUIRED),
                              ({"ClusterId": cluster, "NodeId": 77}, REBOOTSTRAP_REQUIRED),
                              ({"ClusterId": cluster, "NodeId": -5}, REBOOTSTRAP_REQUIRED),
                              ({"ClusterId": cluster}, INVALID_REQUEST), ({"NodeId": node}, INVALID_REQUEST)):
            reply = self.ask("ApiVersions", 5, **SOFTWARE, **values)
            self.assertEqual((error, error == wire.NONE), (reply["ErrorCode"], bool(reply["ApiKeys"])), values)

    # Connections

    def test_any_other_unknown_version_closes_the_connection(self):
        for api, (key, lowest, highest) in KAFKA_VERSIONS.items():
            if api == "ApiVersions":
                continue
            for version in (-1, highest + 1, 99):
                self.assertIsNone(self.raw(self.header(key, version) + b"\0" * 64), f"{api} {version}")
        # Listed, so that old clients compress, and refused.
        for version in (0, 1, 2):
            self.assertIsNone(self.raw(self.header(0, version) + struct.pack(">hii", -1, 1000, 0)))

    def test_unknown_apis_and_bodies_that_do_not_decode_close_the_connection(self):
        for body in (self.header(9999, 0), self.header(-1, 0), self.header(wire.METADATA, 4) + b"\x70\0\0\0",
                     self.header(18, 3, True) + b"\x7f", b"", b"\0\3"):
            self.assertIsNone(self.raw(body), body)

    def test_bytes_behind_a_body_are_ignored(self):
        self.assertIsNotNone(self.raw(self.header(wire.METADATA, 4) + struct.pack(">ib", 0, 0) + b"zz"))

    # Metadata

    def test_a_topic_asked_for_twice_is_told_once(self):
        name, topic_id = self.topic()
        for version in (0, 1, 4, 9, 12):
            self.assertEqual(1, len(self.ask("Metadata", version, Topics=by_name(name, name))["Topics"]), version)
        self.assertEqual(1, len(self.ask("Metadata", 12, Topics=by_id(topic_id, topic_id))["Topics"]))

    def test_metadata_by_id_before_version_12_is_an_invalid_request(self):
        _, topic_id = self.topic()
        for version in (10, 11):
            for topics in (by_id(topic_id), by_id(NO_ID)):
                reply = self.ask("Metadata", version, Topics=topics)
                row, = reply["Topics"]
                self.assertEqual((INVALID_REQUEST, "", topics[0]["TopicId"], []),
                                 (row["ErrorCode"], row["Name"], row["TopicId"], row["Partitions"]))
                self.assertEqual(([], None, -1), (reply["Brokers"], reply["ClusterId"], reply["ControllerId"]))

    def test_bad_names_are_invalid_topics_and_unknown_ids_are_unknown(self):
        for name in ("bad name!", "", ".", "..", "x" * 250):
            for version in (1, 9, 12):
                row, = self.ask("Metadata", version, Topics=by_name(name))["Topics"]
                self.assertEqual(INVALID_TOPIC, row["ErrorCode"], name)
        row, = self.ask("Metadata", 12, Topics=by_id(uuid.UUID(int=99)))["Topics"]
        self.assertEqual((UNKNOWN_TOPIC_ID, None), (row["ErrorCode"], row["Name"]))

    def test_an_endpoint_type_other_than_brokers_is_mismatched(self):
        for version in (1, 2):
            for kind in (0, 2, 3):
                reply = self.ask("DescribeCluster", version, EndpointType=kind)
                self.assertNotEqual(wire.NONE, reply["ErrorCode"])
                self.assertEqual(1, reply["EndpointType"])
            self.assertEqual(MISMATCHED_ENDPOINT_TYPE, self.ask("DescribeCluster", version, EndpointType=2)["ErrorCode"])

    # Topics

    def test_a_topic_named_twice_is_refused_once(self):
        name, topic_id = self.topic()
        twice = [{"Name": "twice", "NumPartitions": count, "ReplicationFactor": 1} for count in (1, 2)]
        for version in (2, 4, 7):
            rows = self.ask("CreateTopics", version, Topics=twice, timeoutMs=10_000)["Topics"]
            self.assertEqual([("twice", INVALID_REQUEST)], [(row["Name"], row["ErrorCode"]) for row in rows])
        for names in (["nobody", "nobody"], [name, name]):
            rows = self.ask("DeleteTopics", 5, TopicNames=names, TimeoutMs=10_000)["Responses"]
            self.assertEqual([(names[0], INVALID_REQUEST)], [(row["Name"], row["ErrorCode"]) for row in rows])
        for topics in (by_name(name, name), by_id(topic_id, topic_id), by_name(name) + by_id(topic_id)):
            rows = self.ask("DeleteTopics", 6, Topics=topics, TimeoutMs=10_000)["Responses"]
            self.assertEqual([INVALID_REQUEST], [row["ErrorCode"] for row in rows], topics)
        self.assertEqual((0, 0), self.connection.list_offset(name, 0), "it is still there")

    # Produce

    def test_messages_of_the_old_formats_are_invalid_records_in_every_version(self):
        name, topic_id = self.topic()
        for version in self.served("Produce"):
            for magic in (0, 1):
                row = self.produce(version, name, topic_id, wire.old_message(b"old", magic))
                self.assertEqual((INVALID_RECORD, -1), (row["ErrorCode"], row["BaseOffset"]))
        self.assertEqual((0, 0), self.connection.list_offset(name, 0))

    def test_what_is_no_batch_is_refused(self):
        name, topic_id = self.topic()
        good = batch([b"v"])
        future = bytearray(good)
        future[16] = 3
        for records, error in ((b"", INVALID_RECORD), (good[:10], INVALID_RECORD), (good + good, INVALID_RECORD),
                               (good[:-3], INVALID_RECORD), (bytes(future), wire.CORRUPT_MESSAGE),
                               (b"\xff" * 100, wire.CORRUPT_MESSAGE)):
            self.assertEqual(error, self.produce(9, name, topic_id, records)["ErrorCode"], records)
        self.assertEqual((0, 0), self.connection.list_offset(name, 0))

    def test_a_producer_id_below_minus_1_is_none(self):
        name, topic_id = self.topic()
        for sequence in (0, 0, 7):
            records = batch([b"v"], producer_id=-7, producer_epoch=0, sequence=sequence)
            self.assertEqual(0, self.produce(9, name, topic_id, records)["ErrorCode"])
        self.assertEqual((0, 3), self.connection.list_offset(name, 0))

    def test_c028_a_negative_sequence_with_a_producer_id_is_an_invalid_record(self):
        name, topic_id = self.topic()
        records = batch([b"v"], producer_id=900, producer_epoch=0, sequence=-5)
        self.assertEqual(INVALID_RECORD, self.produce(9, name, topic_id, records)["ErrorCode"])

    # ListOffsets

    def test_special_times_are_known_from_their_version_on_and_others_below_zero_never(self):
        name, _ = self.topic()
        for version in range(1, KAFKA_VERSIONS["ListOffsets"][2] + 1):
            for special, first in ((-1, 0), (-2, 0), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99), (-100, 99)):
                row, = self.ask("ListOffsets", version, ReplicaId=-1, Topics=[
                    {"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": special}]}])["Topics"][0][
                        "Partitions"]
                self.assertEqual(0 if version >= first else UNSUPPORTED_VERSION, row["ErrorCode"], (version, special))

    # Fetch

    def test_an_error_has_an_empty_list_of_aborted_transactions(self):
        name, topic_id = self.topic()
        row = self.fetch(11, name, topic_id, offset=5)
        self.assertEqual((wire.OFFSET_OUT_OF_RANGE, [], b""),
                         (row["ErrorCode"], row["AbortedTransactions"] or [], row["Records"]))
        row = self.fetch(11, "nobody", NO_ID)
        self.assertEqual((wire.UNKNOWN_TOPIC_OR_PARTITION, []), (row["ErrorCode"], row["AbortedTransactions"]))
