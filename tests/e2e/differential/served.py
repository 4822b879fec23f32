"""Which APIs and versions both brokers serve."""

from harness import messages
from harness.places import ROOT

KAFKA_VERSION = "4.4.0"
# What it lists, without versions that it marks unstable: (API key, lowest, highest).
KAFKA = {
    "Produce": (0, 0, 13), "Fetch": (1, 4, 18), "ListOffsets": (2, 1, 11), "Metadata": (3, 0, 13),
    "OffsetCommit": (8, 2, 10), "OffsetFetch": (9, 1, 10), "FindCoordinator": (10, 0, 6), "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4), "LeaveGroup": (13, 0, 5), "SyncGroup": (14, 0, 5), "DescribeGroups": (15, 0, 6),
    "ListGroups": (16, 0, 5), "SaslHandshake": (17, 0, 1), "ApiVersions": (18, 0, 5), "CreateTopics": (19, 2, 7),
    "DeleteTopics": (20, 1, 6), "DeleteRecords": (21, 0, 2), "InitProducerId": (22, 0, 5),
    "OffsetForLeaderEpoch": (23, 2, 4), "DescribeConfigs": (32, 1, 4),
    "AlterConfigs": (33, 0, 2), "DescribeLogDirs": (35, 1, 5),
    "SaslAuthenticate": (36, 0, 2), "CreatePartitions": (37, 0, 3), "DeleteGroups": (42, 0, 3),
    "IncrementalAlterConfigs": (44, 0, 1), "OffsetDelete": (47, 0, 0), "DescribeCluster": (60, 0, 2), "DescribeTopicPartitions": (75, 0, 0),
}
# The lowest version of each API that KafScale serves.
KAFSCALE = {
    "Produce": 0, "Fetch": 11, "ListOffsets": 0, "Metadata": 0, "OffsetCommit": 3, "OffsetFetch": 5,
    "FindCoordinator": 3, "JoinGroup": 4, "Heartbeat": 4, "LeaveGroup": 4, "SyncGroup": 4, "DescribeGroups": 5,
    "ListGroups": 0, "ApiVersions": 0, "CreateTopics": 0, "DeleteTopics": 0, "OffsetForLeaderEpoch": 3,
    "DescribeConfigs": 4, "AlterConfigs": 1, "CreatePartitions": 0, "DeleteGroups": 0,
}


def _both(api):
    """Of Produce 0 to 2 both say that they have them, and both refuse them."""
    _, lowest, highest = KAFKA[api]
    ours = messages.versions(api)
    return max(lowest, ours[0]), min(highest, ours[1])


BOTH = {api: _both(api) for api in KAFKA}


def of_varve():
    """Names of the APIs that varve has a handler for."""
    lines = (ROOT / "src" / "protocol" / "served_apis.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}
