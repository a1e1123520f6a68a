"""Compiled loops of the synthesizers."""
