"""Protect tables of people for publication, and say exactly what the result promises."""
