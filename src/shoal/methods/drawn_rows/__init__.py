"""The family that draws rows from a noisy model of the table."""
