"""Two servers on one database, and the process that attacks one of them."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.hostile.attacks import Scene, run
from tests.integration.replicas.pair import Lake, Pair, add_clients, started
from tests.servers.issuer import run_issuer

_LIFETIME_S = 24 * 3600  # of tokens: longer than any run
_PEOPLE = 5


@contextmanager
def attacked(names: list[str], scene: Scene, connections: int) -> Iterator[None]:
    attacker = multiprocessing.get_context("spawn").Process(target=run, args=(names, scene, connections), daemon=True)
    attacker.start()
    try:
        yield
    finally:
        attacker.kill()
        attacker.join()


@contextmanager
def installation(folder: str) -> Iterator[tuple[Pair, Lake]]:
    state_dir = Path(folder) / "state"
    signed_in = add_clients(state_dir)
    with (
        run_issuer(state_dir, token_lifetime_s=_LIFETIME_S) as issuer,
        started(issuer, signed_in(issuer)[:_PEOPLE]) as pair,
    ):
        yield pair, Lake.made(pair)
