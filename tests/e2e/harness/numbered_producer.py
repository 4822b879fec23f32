"""A librdkafka producer of numbered records, as a process, and what it was told of each."""

import subprocess
from pathlib import Path

from harness.kills import Outcome
from harness.places import E2E, TOOLS

FINISH_SECONDS_MAX = 300


class NumberedProducer:
    """clients/kill_producer.py; its files lie in the broker's folder, so that they go with it."""

    def __init__(self, broker, sender, topic, partitions, mode, records_a_second):
        self.sender, self.topic, self.mode = sender, topic, mode
        self._stop, self._result = broker.folder / f"stop-{sender}", broker.folder / f"result-{sender}"
        command = [str(TOOLS / "confluent-new" / "bin" / "python"), str(E2E / "clients" / "kill_producer.py"),
                   broker.bootstrap, topic, str(partitions), sender, mode, str(records_a_second), str(self._stop),
                   str(self._result)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def finish(self):
        """Stops it; gives its Outcome."""
        Path(self._stop).touch()
        output, _ = self.process.communicate(timeout=FINISH_SECONDS_MAX)
        outcome = Outcome(self.sender, self.mode, said=output.strip())
        for line in self._result.read_text().splitlines():
            partition, sequence, answer = line.split()
            if answer.lstrip("-").isdigit():
                outcome.acknowledged[int(partition), int(sequence)] = int(answer)
            else:
                (outcome.unanswered if answer == "unanswered" else outcome.failed).append(line)
        return outcome
