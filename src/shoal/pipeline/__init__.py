"""The pipeline: plan, run a method, check what it made, and attach the claims; all in memory."""
