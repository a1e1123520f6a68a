"""The family of methods that form groups, and how a group is released."""
