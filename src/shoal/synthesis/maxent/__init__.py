"""Rows from noisy marginals, by the distribution of greatest entropy near them."""
