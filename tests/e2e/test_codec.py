"""Our codec against the Java client's: random messages of each API and version, from either through the other."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from differential import served
from harness import messages
from harness.places import ROOT, TOOLS, mode

sys.path.insert(0, str(ROOT / "tools" / "vectors"))
import vectors  # noqa: E402

MESSAGES_MIN = 100
# About every third message of Java's is also written with tagged fields that nobody knows, where a version has tagged
# fields. Ours writes none, and reads over them.
MESSAGES = 360


def program():
    """protocol_vectors of the dev build, or VARVE_VECTORS_PROGRAM."""
    return Path(os.environ.get("VARVE_VECTORS_PROGRAM", ROOT / "build" / "dev" / "tools" / "protocol_vectors"))


@unittest.skipIf(mode() == "quick", "needs the jars of two versions of Apache Kafka, which a quick run does not bring")
class Codec(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        new, old = (f"{TOOLS}/{name}/lib/*" for name in ("kafka", "kafka-clients-old"))
        folder = tempfile.TemporaryDirectory(prefix="varve-e2e-")
        cls.addClassCleanup(folder.cleanup)
        cls.sides = vectors.jars(new, old, folder.name)

    def test_100_random_messages_of_each_api_and_version_go_both_ways_through_the_java_client(self):
        counts, tagged = vectors.exchange(self.sides, str(program()), MESSAGES)
        print(f"    {sum(counts.values())} messages, {sum(tagged.values())} of them with unknown tags too")
        for line in vectors.table(counts, tagged):
            print("    " + line)
        for api in served.KAFKA:
            lowest, highest = messages.versions(api)
            for version in range(lowest, highest + 1):
                for kind in ("request", "response"):
                    is_flexible = version >= messages.load(api + kind.title()).flexible
                    for writer in ("Java", "us"):
                        place = api, version, kind, writer
                        self.assertGreaterEqual(counts[place], MESSAGES_MIN, place)
                    if is_flexible:
                        self.assertGreaterEqual(tagged[api, version, kind, "Java"], MESSAGES_MIN, (api, version, kind))

    def test_older_versions_are_served_where_kafscale_serves_them_and_the_newest_3_9_has_them(self):
        old = self.sides[1]
        for api, (key, lowest, highest) in served.KAFKA.items():
            wanted = min(lowest, served.KAFSCALE.get(api, lowest))
            while not old.has(key, wanted) and wanted < lowest:
                wanted += 1
            if api == "Produce":  # 0 to 2 carry only message formats that no broker takes any more
                wanted = 3
            print(f"    {api}: {wanted}-{highest}; Apache Kafka {served.KAFKA_VERSION} {lowest}-{highest}, "
                  f"KafScale from {served.KAFSCALE.get(api, 'none')}")
            self.assertEqual((wanted, highest), messages.versions(api), api)
