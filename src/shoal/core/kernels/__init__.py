"""Compiled kernels that several rooms use."""
