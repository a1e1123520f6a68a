"""The audit: search for violations of a privacy claim."""
