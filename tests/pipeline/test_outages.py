"""The catalog, or the database, is gone in the middle of the work, and comes back."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from standalone.provisioning import ENGINE_PRIVILEGES, ManagementClient
from tests.pipeline.durable_log import change
from tests.pipeline.flushing import Stage, database_url, following, options_for
from tests.servers.lakewarden_server import DevServer
from tests.servers.silent_proxy import SilentProxy


class Road:
    """The way to a server. While it is closed, connections end, and new ones are refused."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._target = urlsplit(url).port or 0
        self._proxy = SilentProxy(self._target, 0)
        self._port = self._proxy.port

    @property
    def url(self) -> str:
        return self._url.replace(f":{self._target}/", f":{self._port}/")

    def open(self) -> None:
        self._proxy = SilentProxy(self._target, self._port)

    def close(self) -> None:
        self._proxy.close()


@pytest.fixture
def roads(server: DevServer) -> Iterator[tuple[Road, Road]]:
    """To the catalog and to the database."""
    with ExitStack() as cleaning:
        made = Road(server.info.catalog_uri), Road(database_url(server))
        for road in made:
            cleaning.callback(road.close)
        yield made


@pytest.fixture
def far(server: DevServer, spark: SparkSession, roads: tuple[Road, Road]) -> Iterator[Stage]:
    """In a warehouse of its own, whose pipeline has only these roads."""
    info = server.info
    management = ManagementClient(info.management_uri, server.token(info.admin))
    beside = Path(urlsplit(info.warehouse.location).path).with_name("far")
    warehouse = management.ensure_warehouse("far", base_path=beside)
    application = f"oidc~{info.engine.client_id}"
    management.grant(warehouse, application=application, name=info.engine.client_id, privileges=ENGINE_PRIVILEGES)
    options = options_for(server)
    config = options.config.model_copy(update={"catalog_uri": roads[0].url})
    options = replace(options, config=config, dsn=roads[1].url)
    with following(server, spark, warehouse, options=options) as follower, Stage.open(follower, namespace="n") as stage:
        yield stage


def test_what_was_gone_and_is_back_has_cost_nothing_but_time(far: Stage, roads: tuple[Road, Road]) -> None:
    far.policy("both")
    far.log.append([change("t", "a", 1, {"v": 1})])
    far.flush()
    for sequence, road in enumerate(roads, start=2):
        road.close()
        far.log.append([change("t", "a", sequence, {"v": sequence}, operation="UPDATE")])
        far.await_error("refused")
        assert far.log.positions()[1] < far.log.positions()[0]
        road.open()
        far.flush()
    assert [row["_cdc_sequence"] for row in far.rows("t")] == [1, 2, 3]
    assert far.mirror("t_current") == {"a": {"v": 3}}
