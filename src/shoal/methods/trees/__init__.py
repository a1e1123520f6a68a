"""Private spatial trees: columns on public axes, and boxes in their space."""
