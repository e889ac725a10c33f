"""A program for `test_killed_writer`: creates ten tables at the same moment, and is killed.

Arguments: the warehouse's id, and the step at which it kills itself.
"""

import asyncio
import sys
from typing import Any

import django

from tests.integration.catalog.killed_writer import die

STEPS = ("while files are written", "before the statement", "during the statement", "after the statement")
TABLES = 10


def main(warehouse_id: str, step: str) -> None:
    django.setup()
    from catalog import access  # noqa: PLC0415 needs settings
    from catalog.identifiers import NamespaceIdentifier  # noqa: PLC0415 as above
    from catalog.services import tables  # noqa: PLC0415 as above
    from catalog.services.creation_writer import new_tables  # noqa: PLC0415 as above
    from catalog.services.tables import CreateTable  # noqa: PLC0415 as above
    from lakewarden.authz.actions import NamespaceAction  # noqa: PLC0415 as above
    from lakewarden.context import Caller, PrincipalId, RequestContext  # noqa: PLC0415 as above
    from lakewarden.hot.statements import Statement  # noqa: PLC0415 as above
    from lakewarden.storage.local import LocalStorage  # noqa: PLC0415 as above
    from tests.integration.catalog.creating import body, no_access  # noqa: PLC0415 as above

    context = RequestContext(Caller(PrincipalId("oidc~engine")), request_id="killed", user_agent="tests")
    ref = NamespaceIdentifier.parse(warehouse_id, "sales")
    granted = access.namespace(context, ref, NamespaceAction.CREATE_TABLE)
    tables.create(tables.plan(granted, CreateTable(name="warm"), body("warm")))  # quota and folder are known then
    write, fetch_one, written = LocalStorage.write_new, Statement.fetch_one, []

    def writing(self: LocalStorage, location: str, content: bytes) -> None:
        written.append(location)
        if len(written) > TABLES // 2:
            die()
        write(self, location, content)

    async def adding(self: Statement, *arguments: Any) -> Any:
        if step == STEPS[1]:
            die()
        if step == STEPS[2]:
            asyncio.get_running_loop().call_later(0.001, die)
        found = await fetch_one(self, *arguments)
        if step == STEPS[3]:
            die()
        return found

    if step == STEPS[0]:
        LocalStorage.write_new = writing  # type: ignore[method-assign]
    Statement.fetch_one = adding  # type: ignore[method-assign, assignment]

    def created(name: str) -> Any:
        return new_tables.create_table(granted, CreateTable(name=name), body(name), is_taken=False, access=no_access)

    async def together() -> None:
        found = await asyncio.gather(*(created(f"t{number}") for number in range(TABLES)))
        raise AssertionError(found)  # nothing took the way that is killed

    asyncio.run(together())


if __name__ == "__main__":
    main(*sys.argv[1:])
