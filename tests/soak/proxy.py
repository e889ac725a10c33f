"""`python -m tests.soak.proxy LISTEN TARGET`: hands on bytes between two ports of this machine.

Frozen (SIGSTOP) it is a network that delivers nothing; killed, one that cuts every connection.
"""

import asyncio
import sys

from standalone.ports import HOST

_CHUNK = 1 << 16


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve(listen: int, target: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(HOST, target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_hand_on(reader, there_writer), _hand_on(there_reader, writer))

    async with await asyncio.start_server(connected, HOST, listen) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
