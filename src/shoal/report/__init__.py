"""Reports: what a release promises, for people to read."""
