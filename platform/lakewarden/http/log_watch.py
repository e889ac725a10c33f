"""Looks for new events for all who wait in this process: one statement, however many they are, on the event loop."""

import asyncio
import logging
from typing import Final

import psycopg

from lakewarden.hot import connections
from lakewarden.hot.sessions import fetch
from lakewarden.http import health

logger = logging.getLogger(__name__)

SHORTEST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 1.0
"""Between two looks: it doubles while there is nothing new."""

_TEXT: Final = 0
_NEWS: Final = b"""
    select project_id, max(position) from (
        select position, project_id from event_log where position > $1::bigint order by position limit 1000
    ) n group by project_id
"""


class _Waiting:
    """For events beyond `position`, of a project or (None) of all."""

    __slots__ = ("position", "project", "woken")

    def __init__(self, position: int, project: str | None) -> None:
        self.position, self.project = position, project
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class LogWatch:
    """To be used on the event loop only. It looks while somebody waits."""

    def __init__(self) -> None:
        self._waiting: set[_Waiting] = set()
        self._end = 0
        self._task: asyncio.Task[None] | None = None

    async def news(self, position: int, project: str | None, *, gone: "asyncio.Future[None]", within_s: float) -> int:
        """Wait for events beyond a position, for the reader to be `gone`, for the server's end, or for the time.

        Returns the position up to which there is certainly nothing of the project.
        """
        own = _Waiting(position, project)
        self._waiting.add(own)
        if self._task is None:
            self._end = position
            self._task = asyncio.create_task(self._look())
        # not what readers say: a position that was made up would hide what is new, or seem to others to be news
        self._end = min(self._end, position)
        try:
            await asyncio.wait({own.woken, gone}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(own)
        return own.position

    async def _look(self) -> None:
        pause_s = SHORTEST_PAUSE_S
        try:
            while True:
                await asyncio.sleep(pause_s)
                if not self._waiting or health.STOPPING.is_set():
                    return
                try:
                    is_new = await self._tell()
                except (psycopg.Error, OSError) as error:  # the next page of a reader fails, too
                    logger.warning("readers of events wait for the database: %s", str(error).strip())
                    is_new, pause_s = False, LONGEST_PAUSE_S
                pause_s = SHORTEST_PAUSE_S if is_new else min(pause_s * 2, LONGEST_PAUSE_S)
        finally:
            self._task = None
            for each in self._waiting:
                each.wake()

    async def _tell(self) -> bool:
        before = self._end
        async with connections.connection() as connection:
            rows = await fetch(connection, _NEWS, [str(before).encode()], [_TEXT])
        if not rows:
            return False
        newest: dict[str | None, int] = dict(rows)
        end = self._end = max(newest.values())
        for each in self._waiting:
            news = end if each.project is None else newest.get(each.project, 0)
            if news > each.position or each.position < before:  # the latter came while the log was looked at
                each.wake()
            else:
                # whoever has read all that was known needs not read again for what is others'
                each.position = max(each.position, end)
        return True
