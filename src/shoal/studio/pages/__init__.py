"""The five screens: thin routes, and functions that turn what the pipeline says into a page.

One file a screen. `editing` changes single lines of the policy, `fields` and `protect_fields` turn
models into fields and back, `common` has the rail, `home` the way in and the work under way,
`inspection` what the table says under the policy.
"""

from fastapi import APIRouter

from shoal.studio.pages import compare, data, home, inspection, protect, release, roles

router = APIRouter(include_in_schema=False)
for part in (home, data, roles, protect, inspection, compare, release):
    router.include_router(part.router)
router.include_router(release.downloads)

__all__ = ["router"]
