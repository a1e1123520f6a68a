"""The audit: try to break the promise of a policy, ours first."""
