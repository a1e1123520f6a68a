"""Dangerous primitives: noise that carries privacy, and the accounting that pays for it.

A mistake here breaks a promise without breaking a test elsewhere, so an import contract lists who
may use this room. `noise` draws by OpenDP, `accounting` composes losses, and `fakes` stands in for
the noise in tests. OpenDP is loaded at the first draw.
"""
