"""Metrics of utility and risk: arrays in, numbers or `Estimate`s out."""
