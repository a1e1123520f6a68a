"""How methods run on rows that lie in blocks on many machines."""
