"""A program for `test_killed_writer`: commits six times to each of two tables at the same moment, and is killed.

Arguments: the warehouse's id, and the step at which it kills itself.
"""

import asyncio
import os
import signal
import sys
from typing import Any, Never

import django

STEPS = ("while files are written", "before the swap", "during the swap", "after the swap")


def die(*_: object) -> Never:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def main(warehouse_id: str, step: str) -> None:
    django.setup()
    from catalog.services.commit_writer import swaps  # noqa: PLC0415 needs settings
    from catalog.services.commit_writer.writer import commit  # noqa: PLC0415 as above
    from lakewarden.storage.local import LocalStorage  # noqa: PLC0415 as above
    from tests.integration.catalog.lake import set_properties  # noqa: PLC0415 as above
    from tests.integration.catalog.together import Committing  # noqa: PLC0415 as above

    committing = Committing(warehouse_id)
    commits = [
        committing.to(name, set_properties(**{f"k{number}": "x"}))
        for number in range(6)
        for name in ("orders", "bills")
    ]
    write, swap_on, written = LocalStorage.write_new, swaps.swap_on, []

    def writing(self: LocalStorage, location: str, content: bytes) -> None:
        written.append(location)
        if len(written) > 4:
            die()
        write(self, location, content)

    async def swapping(usable: Any, chains: Any) -> Any:
        if step == STEPS[1]:
            die()
        if step == STEPS[2]:
            asyncio.get_running_loop().call_later(0.001, die)
        outcomes = await swap_on(usable, chains)
        if step == STEPS[3]:
            die()
        return outcomes

    if step == STEPS[0]:
        LocalStorage.write_new = writing  # type: ignore[method-assign]
    swaps.swap_on = swapping

    async def together() -> None:
        await asyncio.gather(*(commit(each) for each in commits))

    asyncio.run(together())


if __name__ == "__main__":
    main(*sys.argv[1:])
