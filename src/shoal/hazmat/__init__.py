"""Dangerous primitives: privacy noise, and the accounting of its losses.

A mistake here breaks a promise without breaking a test elsewhere, so an import contract lists which
modules may use this package. `noise` draws by OpenDP, `accounting` composes losses, and `fakes`
stands in for the noise in tests. OpenDP is loaded at the first draw.
"""
