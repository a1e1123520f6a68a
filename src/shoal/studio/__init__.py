"""The studio: a local page on which a steward protects a table without writing code.

The third door to the pipeline. It parses, calls one function and shows the result; nothing is
decided in it. Rooms inside, each on top of those before it: `settings`, `workspace` (what a
steward has done so far), `history` (releases and what they spent), `uploads`, `profile`,
`policy_document` (as text and as fields), `jobs` with its `worker` (long work in processes of their
own), `context` (what a request may use), `api`, `downloads`, `pages`, `security`, `app`, `server`.
"""
