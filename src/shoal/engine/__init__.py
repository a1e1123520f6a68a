"""Where work runs. An engine moves data and holds no privacy logic."""
