"""Commits offsets under odd group ids with odd metadata, and asks for topics of odd names; runs in confluent's venv.

    odd_texts.py BOOTSTRAP TOPIC < {"groups": [...], "metadata": [...], "topics": [...]}

Prints {"committed": [[group, metadata read back], ...], "created": [[name, the error's name or null], ...]} as JSON.
"""

import json
import sys

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 60


def commit(bootstrap, topic, group, metadata):
    """What it reads back of what it committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0)])
    consumer.commit(offsets=[TopicPartition(topic, 0, 1, metadata)], asynchronous=False)
    place, = consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS)
    consumer.close()
    assert place.offset == 1, place
    return place.metadata


def create(admin, name):
    try:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS)
    except KafkaException as error:
        return error.args[0].name()
    return None


def main():
    bootstrap, topic = sys.argv[1:]
    wanted = json.load(sys.stdin)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    json.dump({"committed": [[group, commit(bootstrap, topic, group, metadata)]
                             for group, metadata in zip(wanted["groups"], wanted["metadata"])],
               "created": [[name, create(admin, name)] for name in wanted["topics"]]}, sys.stdout)


main()
