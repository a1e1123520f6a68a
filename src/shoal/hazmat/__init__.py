"""Dangerous primitives: noise that carries privacy, and the ledger that pays for it.

A mistake here breaks a promise without breaking a test elsewhere, so only `shoal.release`
imports this room. `noise` draws by OpenDP, `ledger` composes prices, `budget` keeps
them in a file, and `fakes` stands in for the noise in tests. OpenDP is loaded at the first draw.
"""
