"""The budget file: the privacy budget of a population, and what all runs have spent of it."""
