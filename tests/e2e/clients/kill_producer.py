"""Produces numbered records without pause while the broker, or its store, goes and comes back; runs in confluent's venv.

    kill_producer.py BOOTSTRAP TOPIC PARTITIONS SENDER idempotent|plain RATE STOP-FILE RESULT-FILE

A value is "<sender>:<partition>:<sequence>:<padding>", each partition's sequence rising from 0. When the stop file is
there, it sends no more, waits until everything is answered, and writes one line for each record that it sent:
partition, sequence, offset. A record that was refused has the error's name in place of its offset, one that the broker
did not answer in ANSWER_SECONDS the word "unanswered".
"""

import os
import random
import sys
import time

from confluent_kafka import Producer

# After the last restart. Much more than any answer takes, so that a machine busy with other things is no failure.
ANSWER_SECONDS = 120


def main():
    bootstrap, topic, partitions, sender, mode, rate, stop_path, result_path = sys.argv[1:]
    # Without a timeout of its own for a message: else the client would answer in the place of a broker that does not.
    settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 2, "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20, "message.timeout.ms": 0,
                "request.timeout.ms": 5_000, "socket.timeout.ms": 6_000,
                "message.send.max.retries": 1_000_000, "topic.metadata.refresh.fast.interval.ms": 50}
    if mode == "idempotent":
        settings["enable.idempotence"] = True
    else:
        # With more requests in flight the retries of a plain producer overtake each other, which is its own doing.
        settings["max.in.flight.requests.per.connection"] = 1
    producer = Producer(settings)
    results = {}

    def delivered(partition, sequence):
        def callback(error, message):
            results[partition, sequence] = error.name() if error else message.offset()

        return callback

    sequences = [0] * int(partitions)
    pause = 1 / int(rate)
    while not os.path.exists(stop_path):
        partition = random.randrange(len(sequences))
        sequence = sequences[partition]
        sequences[partition] += 1
        value = f"{sender}:{partition}:{sequence}:".encode() + b"." * random.choice((0, 100, 3000))
        while True:
            try:
                producer.produce(topic, value, partition=partition, callback=delivered(partition, sequence))
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(pause)
    producer.flush(ANSWER_SECONDS)
    with open(result_path, "w", encoding="ascii") as file:
        for partition, sent in enumerate(sequences):
            for sequence in range(sent):
                file.write(f"{partition} {sequence} {results.get((partition, sequence), 'unanswered')}\n")
    print(f"{sum(sequences)} sent, {len(results)} answered")


main()
