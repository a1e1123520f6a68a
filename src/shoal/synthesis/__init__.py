"""Noisy models of tables, from which rows are drawn."""
