"""Randomised mechanisms: arrays and `Noise` in, arrays and `PrivacyLoss`es out."""
