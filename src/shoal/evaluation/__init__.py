"""Score releases against their originals: evaluate one, compare many, audit a promise."""
