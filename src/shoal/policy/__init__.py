"""The policy file: its shape (`spec`), reading it (`load`), and a first draft of one (`draft`)."""

from shoal.policy.load import PolicySource, json_schema, load, loads, requirements, restored, shown

__all__ = ["PolicySource", "json_schema", "load", "loads", "requirements", "restored", "shown"]
