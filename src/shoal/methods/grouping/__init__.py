"""Common parts of the methods that form groups, and how groups are released."""
