"""ApiVersions, DescribeCluster, FindCoordinator, InitProducerId."""

from differential.scripts import script

SOFTWARE = {"ClientSoftwareName": "e2e", "ClientSoftwareVersion": "1.0"}
# Sent as group ids, keys, names: no broker may mind them.
ODD_TEXTS = ("", " ", "a b", "\u00e9\U0001F600", "a\nb", "/", "..", "g" * 249, "g" * 1000, "__consumer_offsets")


@script("ApiVersions")
def api_versions(side):
    for version in side.versions("ApiVersions"):
        side.ask("ApiVersions", version, SOFTWARE)
        for name in ("", "-x", "a b", "x" * 300, "a_b", "a.b", "a-b", "\u00e9", "x-", "7", ".", "x\n"):
            for field in SOFTWARE:
                side.ask("ApiVersions", version, {**SOFTWARE, field: name}, f"{field} {name[:20]!r}")
        if version >= 5:
            here = side.quietly("Metadata", 12, {"Topics": []})
            for label, cluster, node in (("right", here["ClusterId"], 1), ("another node", here["ClusterId"], 2),
                                         ("another cluster", "x", 1), ("cluster only", here["ClusterId"], -1),
                                         ("node only", None, 1), ("node 0 only", None, 0), ("negative", None, -2),
                                         ("empty cluster", "", 1), ("empty cluster only", "", -1)):
                side.ask("ApiVersions", version, {**SOFTWARE, "ClusterId": cluster, "NodeId": node}, label)


@script("DescribeCluster")
def describe_cluster(side):
    for version in side.versions("DescribeCluster"):
        for kind in (-128, -1, 0, 1, 2, 3, 4, 127):
            for operations in (False, True):
                for fenced in (False, True):
                    if version >= 2 or not fenced:
                        side.ask("DescribeCluster", version, {
                            "IncludeClusterAuthorizedOperations": operations, "EndpointType": kind,
                            "IncludeFencedBrokers": fenced}, f"kind {kind}")
        for _ in range(10):
            side.ask("DescribeCluster", version, {}, "plain")


@script("FindCoordinator")
def find_coordinator(side):
    for version in side.versions("FindCoordinator"):
        def ask(label, *keys, kind=0, number=version):
            side.ask("FindCoordinator", number, {"Key": keys[0] if keys else "", "CoordinatorKeys": list(keys),
                                                 "KeyType": kind}, label)
        for index, text in enumerate(ODD_TEXTS):
            ask(f"group {index}", text)
        for kind in (-1, 3, 4, 127, -128):
            ask(f"kind {kind}", "key", kind=kind)
        if version >= 4:
            ask("nothing")
            ask("three", "a", "b", "c")
            ask("twice", "a", "a")
            ask("an empty one among others", "a", "", "b")
            ask("a hundred", *[f"g{index}" for index in range(100)])
        for kind in (2,):
            ask("share", "group:topic:0", kind=kind)


@script("InitProducerId")
def init_producer_id(side):
    for version in side.versions("InitProducerId"):
        def ask(label, transactional=None, number=version, **values):
            return side.ask("InitProducerId", number, {"TransactionalId": transactional, "TransactionTimeoutMs": 1000,
                                                       **values}, label)
        for _ in range(3):
            ask("plain")
        for timeout in (0, -1, 2**31 - 1, -2**31):
            ask(f"timeout {timeout}", TransactionTimeoutMs=timeout)
        ask("empty transactional id", "")
        if version >= 3:
            for producer, epoch in ((5, 3), (5, -1), (-1, 3), (-2, -2), (-2, 0), (0, 0), (2**63 - 1, 32767),
                                    (-2**63, -32768), (10**9, 0), (-1, -1), (7, -2)):
                ask(f"producer {producer} epoch {epoch}", ProducerId=producer, ProducerEpoch=epoch)
                ask(f"empty transactional id, producer {producer} epoch {epoch}", "", ProducerId=producer,
                    ProducerEpoch=epoch)
        for _ in range(4):
            ask("plain again")
