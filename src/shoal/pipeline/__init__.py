"""The pipeline: plan, run a method, check the result, and attach the claims; all in memory."""
