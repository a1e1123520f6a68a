"""What the methods that draw noise share: prices for persons, claims, noisy microaggregates."""
