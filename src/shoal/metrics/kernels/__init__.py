"""Compiled loops of the metrics."""
