"""The family of private spatial trees: columns on public axes, and boxes of them."""
