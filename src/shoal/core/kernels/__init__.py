"""Compiled kernels that several packages use."""
