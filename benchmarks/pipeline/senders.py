"""Sends the changes through the gateway at a rate, with the client that users have."""

import threading
import time

from benchmarks.pipeline.changes import Changes
from ingest.client import ClientCredentials, IngestClient
from ingest.client.retries import Backoff
from standalone.ready import ReadyInfo

BATCH = 100


class Senders:
    """A thread for each source. An event's timestamp is when it was due, also if it is sent late."""

    def __init__(self, info: ReadyInfo, changes: Changes, *, rate: float) -> None:
        self._info = info
        self._changes = changes
        self._rate = rate
        self.failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(source,), name=f"source-{source}", daemon=True)
            for source in range(changes.sources)
        ]
        self.began = 0.0

    def start(self) -> None:
        self.began = time.time() + 1.0
        for thread in self._threads:
            thread.start()

    @property
    def are_sending(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _run(self, source: int) -> None:
        try:
            self._send(source)
        except BaseException as error:
            self.failures.append(error)
            raise

    def _send(self, source: int) -> None:
        info = self._info
        token = ClientCredentials(
            info.token_endpoint, info.admin.client_id, info.admin.client_secret, info.engine.scope
        )
        address = info.catalog_uri.removesuffix("/catalog") + "/lakehouse"
        numbers = self._changes.numbers(source)
        with IngestClient(
            address, source=f"{self._changes.namespace}-{source}", token=token, backoff=Backoff(give_up_s=600)
        ) as client:
            for first in range(0, len(numbers), BATCH):
                batch = numbers[first : first + BATCH]
                while (early := self._due(batch[-1]) - time.time()) > 0:
                    time.sleep(min(early, 0.05))
                    client.poll()
                events = [self._changes.encoded(each, timestamp_ms=round(self._due(each) * 1000)) for each in batch]
                client.send_encoded(events, span=(batch[0], batch[-1]))

    def _due(self, number: int) -> float:
        return self.began + number / self._rate
