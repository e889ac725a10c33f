"""`python -m tests.long_job`: one statement of Spark that runs longer than the credentials that it began with.

Credentials of a real MinIO end after 15 minutes, which is the least that STS allows. The statement reads one file each
minute and writes one, so that its last tasks can only succeed with credentials that the engine has fetched by itself.
"""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

import urllib3
from botocore.exceptions import ClientError
from pyspark.sql import SparkSession

from pipeline.spark.catalogs import RestCatalog
from pipeline.spark.jars import CATALOG_JARS
from pipeline.spark.session import session
from standalone.s3.programs import Keys
from tests.servers.lakewarden_server import DevServer, start_dev

VALID_S = 900
_SLEEP = "reflect('java.lang.Thread', 'sleep', {milliseconds}L)"
_EACH_FILE_ALONE = "'read.split.target-size'='1', 'read.split.open-file-cost'='1'"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long_job", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=17, help="how long the statement runs: a file each [17]")
    minutes = parser.parse_args().minutes
    with start_dev(arguments=("--warehouse", "s3")) as server:
        _shorten(server)
        with session(
            [_catalog(server)],
            app_name="long-job",
            master="local[1]",
            jar_names=(*CATALOG_JARS, "iceberg-aws-bundle"),
        ) as spark:
            return _run(server, spark, minutes)


def _run(server: DevServer, spark: SparkSession, minutes: int) -> int:
    spark.sql("CREATE NAMESPACE lake.long")
    spark.sql(f"CREATE TABLE lake.long.source (id BIGINT) TBLPROPERTIES ({_EACH_FILE_ALONE})")
    for number in range(minutes):
        spark.sql(f"INSERT INTO lake.long.source VALUES ({number})")  # noqa: S608 a number
    spark.sql("CREATE TABLE lake.long.target (id BIGINT, slept STRING)")
    first = _credentials(server, "target")
    began = time.monotonic()
    _say(f"the statement begins; credentials of this moment end at {_ends(first)}")
    slept = _SLEEP.format(milliseconds=60_000)
    spark.sql(f"INSERT INTO lake.long.target SELECT id, {slept} FROM lake.long.source")  # noqa: S608 ours
    took = time.monotonic() - began
    _say(f"the statement ended after {took:.0f} s, {took - VALID_S:.0f} s after its first credentials")
    rows = spark.sql("SELECT count(*), sum(id) FROM lake.long.target").collect()[0]
    _say(f"rows and sum: {tuple(rows)}; credentials fetched by the engine: {_refreshes(server) - 1}")
    refusal = _refused(server, first) if took > VALID_S else "not tried: they have not ended"
    _say(f"the store's answer to the first credentials now: {refusal}")
    is_right = tuple(rows) == (minutes, sum(range(minutes)))
    return 0 if is_right and (took <= VALID_S or refusal is not None) else 1


def _catalog(server: DevServer) -> RestCatalog:
    info = server.info
    return RestCatalog(
        name="lake",
        uri=info.catalog_uri,
        warehouse=info.warehouse.name,
        credential=f"{info.engine.client_id}:{info.engine.client_secret}",
        oauth2_server_uri=info.token_endpoint,
        scope=info.engine.scope,
        extra={"header.X-Iceberg-Access-Delegation": "vended-credentials"},
    )


def _shorten(server: DevServer) -> None:
    """Let credentials end as early as STS allows."""
    path = f"/v1/warehouse/{server.info.warehouse.id}"
    profile = _manage(server, "GET", path)["storage-profile"] | {"sts-token-validity-seconds": VALID_S}
    _manage(server, "POST", f"{path}/storage", {"storage-profile": profile})


def _credentials(server: DevServer, table: str) -> dict[str, Any]:
    """An entry of `storage-credentials`."""
    info = server.info
    url = f"{info.catalog_uri}/v1/{info.warehouse.id}/namespaces/long/tables/{table}/credentials"
    answer = urllib3.request("GET", url, headers={"authorization": f"Bearer {server.token(info.engine)}"})
    (entry,) = json.loads(answer.data)["storage-credentials"]
    return dict(entry)


def _refreshes(server: DevServer) -> int:
    """How often credentials were fetched by themselves, as the server counts its calls; one of them is ours."""
    found = _manage(server, "POST", "/v1/endpoint-statistics", {"warehouse": {"type": "all"}})
    return sum(
        each["count"]
        for group in found["called-endpoints"]
        for each in group
        if each["http-route"].endswith("/credentials")
    )


def _refused(server: DevServer, entry: dict[str, Any]) -> str | None:
    """The store's refusal of these credentials; None if it still accepts them."""
    import boto3  # noqa: PLC0415 only here

    store, config = server.info.s3, entry["config"]
    assert store is not None
    place = entry["prefix"].removeprefix(f"s3://{store.bucket}/")
    keys = Keys(config["s3.access-key-id"], config["s3.secret-access-key"], config["s3.session-token"])
    client = boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        aws_session_token=keys.session_token,
    )
    try:
        client.put_object(Bucket=store.bucket, Key=f"{place}/x", Body=b"")
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return None


def _ends(entry: dict[str, Any]) -> str:
    at = int(entry["config"]["s3.session-token-expires-at-ms"]) / 1000
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S} UTC"


def _manage(server: DevServer, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    token = server.token(server.info.admin)
    url = f"{server.info.management_uri}{path}"
    answer = urllib3.request(method, url, json=body, headers={"authorization": f"Bearer {token}"})
    assert answer.status < 300, answer.data
    return json.loads(answer.data) if answer.data else None


def _say(line: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
