"""Randomised mechanisms: arrays and `Noise` in, arrays and `PrivacyLoss`s out."""
