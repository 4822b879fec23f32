"""The same requests to Apache Kafka and to varve, and what differs. README.md of the folder above says how it is run.

A script is a function that plays a story against one Side, with the decorator of scripts.py; it runs once against
each broker. What each request was answered is recorded with all that must differ (ids, ports, times) replaced by
words, and the two records are compared. A difference is a failure unless docs/differences.md has a row for it.
"""
