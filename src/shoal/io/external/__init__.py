"""External releases: made by somebody else, read beside their original."""
