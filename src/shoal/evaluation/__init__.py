"""Score releases against their originals: evaluate one, compare many; inspect a table before."""
