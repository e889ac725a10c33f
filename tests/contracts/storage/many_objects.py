"""Fills a bucket for purges, faster than a client with one connection can."""

import asyncio
from datetime import timedelta

import obstore
from obstore.store import S3Store

from tests.servers.s3_server import REGION, S3Server


def fill(server: S3Server, bucket: str, names: list[str]) -> None:
    store = S3Store(
        bucket,
        endpoint=server.endpoint,
        region=REGION,
        access_key_id=server.root.access_key_id,
        secret_access_key=server.root.secret_access_key,
        client_options={"allow_http": True, "timeout": timedelta(seconds=120)},
    )

    async def put_all() -> None:
        left = iter(names)

        async def put_some() -> None:
            for name in left:
                await obstore.put_async(store, name, b"rows", use_multipart=False)

        await asyncio.gather(*(put_some() for _ in range(32)))

    asyncio.run(put_all())
