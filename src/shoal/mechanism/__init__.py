"""Randomised mechanisms: arrays and `Noise` in, arrays and `Spending`s out."""
