"""The policy file: its models (`spec`), reading it (`load`), and drafting one (`draft`)."""

from shoal.policy.load import (
    PolicySource,
    json_schema,
    load,
    loads,
    requirements,
    restore_policy,
    to_json_value,
)

__all__ = [
    "PolicySource",
    "json_schema",
    "load",
    "loads",
    "requirements",
    "restore_policy",
    "to_json_value",
]
