"""Folders: what is published, what stays with the officer, and what verifies a release.

`DIR` holds only what may be published; `DIR.internal` holds what compares the release with
the original. They are two transactions. The public folder is written whole and put in place, and
the budget's entry is settled; then, separately, the original is compared with it. That step may
fail, and be repeated (`confidential_folder.report`), without touching the release.
"""
