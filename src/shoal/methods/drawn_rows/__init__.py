"""The methods that draw rows from a noisy model of the table."""
