#!/usr/bin/env python3
"""Writes src/protocol/records/vectors/ with Kafka's own classes, fetched through mvn.

    tools/vectors/make_record_vectors.py            writes both files
    tools/vectors/make_record_vectors.py check      reads batches as hex, prints the records that Java sees

Needs a JDK (17 or newer) and mvn. The build and the tests need neither: the files are checked in.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

KAFKA = "4.4.0"
VERDICTS = ["700", "7"]
HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent.parent / "src" / "protocol" / "records" / "vectors"
POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>varve</groupId><artifactId>vectors</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-storage</artifactId><version>{KAFKA}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""


def class_path(folder):
    pom, result = folder / "pom.xml", folder / "class_path"
    pom.write_text(POM)
    subprocess.run(
        ["mvn", "-q", "-B", "-f", pom, "dependency:build-classpath", f"-Dmdep.outputFile={result}"], check=True
    )
    return result.read_text().strip()


def main():
    with tempfile.TemporaryDirectory() as folder:
        java = ["java", "-cp", class_path(Path(folder)), HERE / "RecordVectors.java"]
        if sys.argv[1:] == ["check"]:
            subprocess.run([*java, "check"], check=True)
            return
        VECTORS.mkdir(exist_ok=True)
        for name, arguments in (("java_batches", ["corpus"]), ("kafka_verdicts", ["verdicts", *VERDICTS])):
            text = subprocess.run([*java, *arguments], check=True, capture_output=True, text=True).stdout
            (VECTORS / f"{name}.txt").write_text(f"# Written by tools/vectors with Kafka {KAFKA}.\n{text}")


if __name__ == "__main__":
    main()
