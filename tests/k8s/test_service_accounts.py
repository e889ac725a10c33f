"""Service accounts of the cluster as users: whose tokens are accepted, what they may, and when that ends."""

import pytest

from tests.k8s.lake import Lake
from tests.k8s.release import Release
from tests.servers.kubernetes_node import until

pytestmark = pytest.mark.timeout(1800)
WHOAMI = "/management/v1/whoami"


def test_a_token_is_accepted_for_its_audience_and_as_long_as_its_account_lives(lw: Release, lake: Lake) -> None:
    lw.kubectl("create", "serviceaccount", "engine")
    lw.kubectl("create", "serviceaccount", "other")
    engine, other = lw.token("engine"), lw.token("other")
    lake.make_table("granted")
    path = f"{lake.tables}/granted"
    assert lw.ask("GET", path)[0] == 401
    assert lw.ask("GET", path, token=lw.token("engine", audience="https://another.example.org"))[0] == 401
    assert lw.ask("GET", path, token=f"{engine[:-8]}AAAAAAAA")[0] == 401

    status, me = lw.ask("GET", WHOAMI, token=engine)
    assert status == 200, me
    assert me["id"] == f"kubernetes~{lw.kubectl('get', 'serviceaccount', 'engine', '-o', 'jsonpath={.metadata.uid}')}"
    assert lw.ask("GET", WHOAMI, token=other)[0] == 200
    assert lw.ask("GET", path, token=engine)[0] in {403, 404}  # nothing is granted yet

    assignments = f"/management/v1/permissions/warehouse/{lake.warehouse}/assignments"
    grant = {"writes": [{"type": "select", "user": me["id"]}], "deletes": []}
    assert lw.ask("POST", assignments, grant, token=lake.token)[0] == 204
    assert lw.ask("GET", path, token=engine)[0] == 200
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    assert lw.ask("POST", path, change, token=engine)[0] == 403
    assert lw.ask("GET", path, token=other)[0] in {403, 404}

    lw.kubectl("delete", "serviceaccount", "engine")
    # the API server itself goes on to accept it for some seconds, and servers ask it every ten
    until(lambda: lw.ask("GET", path, token=engine)[0] == 401, "the end of a deleted account's token", lw.node)
    lw.kubectl("delete", "serviceaccount", "other")
