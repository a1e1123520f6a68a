"""The budget file: what has been spent on a population, by all runs together."""
