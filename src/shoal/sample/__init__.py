"""A table of people to try things on: invented, believable, and the same for everybody.

`load()` reads the 10,000 rows that come with the package, `people(n, seed)` draws as many
as you like, and `folder()` says where the policy and the hierarchies lie.
"""

from shoal.sample.generator import people
from shoal.sample.shipped import folder, load, regenerate

__all__ = ["folder", "load", "people", "regenerate"]
