"""Common parts of noisy methods: losses of persons, claims, noisy microaggregation."""
