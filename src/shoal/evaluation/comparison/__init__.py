"""Compare methods and parameters on one table."""
