"""Compiled reading of the cells of text files."""
