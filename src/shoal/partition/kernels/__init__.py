"""Compiled loops of the partitioning algorithms."""
