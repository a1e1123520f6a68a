"""Score releases against their originals, compare methods, and inspect tables."""
