"""Starts brokers, drives real clients, speaks the wire protocol by hand where no client would."""
