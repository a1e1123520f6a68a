"""Releases that somebody else made, beside their original."""
