"""Plays the scripts against both brokers at once."""

import importlib
import pkgutil
import traceback
from concurrent.futures import ThreadPoolExecutor

import differential
from differential import served
from differential.scripts import SCRIPTS
from differential.side import Side
from harness.broker import KafkaBroker, VarveBroker

# Both alike, also in what harness/broker.py sets; the offsets topic in one partition is made sooner.
# And of what is written with a time of long ago, nothing may go while scripts run.
_KAFKA = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1,
          "log.retention.check.interval.ms": 86_400_000}
_VARVE = {"KAFSCALE_BROKER_ID": "1", "KAFSCALE_LOG_LEVEL": "warn"}


def load_scripts():
    for module in pkgutil.iter_modules(differential.__path__):
        importlib.import_module(f"differential.{module.name}")
    return sorted(SCRIPTS, key=lambda script: (not script.is_first, script.name))


def brokers():
    """(Kafka, varve), not started."""
    return KafkaBroker(settings=_KAFKA, java_options=("-Xmx512m", "-XX:TieredStopAtLevel=1")), VarveBroker(
        settings=_VARVE)


def play(side, scripts):
    """Runs the scripts one after another; what is recorded is in side.steps."""
    side.await_coordinators()
    for script in scripts:
        side.begin(script.name)
        try:
            script.play(side)
        except Exception:  # a script that cannot go on is a difference, not the end
            side.broke(traceback.format_exc(limit=-3))
    side.end()
    return side.steps


def play_both(kafka, varve, chosen=lambda name: True):
    ours = served.of_varve()
    scripts = [script for script in load_scripts() if set(script.apis) <= ours and chosen(script.name)]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda broker: play(Side(broker), scripts), (kafka, varve)))
