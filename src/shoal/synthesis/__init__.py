"""Noisy models of whole tables, and rows drawn from them."""
