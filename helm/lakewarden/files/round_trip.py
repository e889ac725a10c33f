"""`helm test`: the server answers, knows the service account of this pod, and (in a trial) keeps a table."""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SERVER = os.environ["SERVER"]
NAME = "helm-test"


def call(method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, Any]:
    """The status and the answer; it waits at most 30 seconds."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{SERVER}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read()
            return answer.status, json.loads(content) if content else None
    except urllib.error.HTTPError as error:
        content = error.read()
        return error.code, json.loads(content) if content else None


def expect(what: str, found: tuple[int, Any], *statuses: int) -> Any:
    """The answer, if its status is one of these."""
    status, answer = found
    print(f"{status} {what}", flush=True)
    if status not in statuses:
        sys.exit(f"{what} was answered {status}, not {' or '.join(map(str, statuses))}: {answer}")
    return answer


def main() -> None:
    health = expect("GET /health/ready", call("GET", "/health/ready"), 200)
    if health["version"] != os.environ["VERSION"]:
        sys.exit(f"the server is of version {health['version']}, this chart of {os.environ['VERSION']}")
    expect("without a token", call("GET", "/management/v1/whoami"), 401)
    if os.environ["SIGNS_IN"] != "true":
        return
    token = Path("/token/token").read_text(encoding="ascii")
    expect("with a token that was changed", call("GET", "/management/v1/whoami", token=token[:-8] + "AAAAAAAA"), 401)
    if os.environ["BOOTSTRAPS"] == "true":
        bootstrapped = {"accept-terms-of-use": True}
        # 400 from the second run on
        expect("bootstrap", call("POST", "/management/v1/bootstrap", bootstrapped, token=token), 204, 400)
    status, me = call("GET", "/management/v1/whoami", token=token)
    # a user who has never called the catalog is not known yet; what counts is that the token was accepted
    expect("with the token of this pod's service account", (status, me), 200, 403, 404)
    if os.environ["BOOTSTRAPS"] == "true":
        keep_a_table(token)


def keep_a_table(token: str) -> None:
    warehouse = {"warehouse-name": NAME, "storage-profile": {"type": "local", "base-path": f"/warehouses/{NAME}"}}
    expect("create a warehouse", call("POST", "/management/v1/warehouse", warehouse, token=token), 201, 409)
    config = expect("config", call("GET", f"/catalog/v1/config?warehouse={NAME}", token=token), 200)
    at = f"/catalog/v1/{config['overrides']['prefix']}/namespaces"
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "number", "type": "long", "required": False}],
    }
    expect("create a namespace", call("POST", at, {"namespace": [NAME]}, token=token), 200, 409)
    table = f"{at}/{NAME}/tables"
    expect("create a table", call("POST", table, {"name": "numbers", "schema": schema}, token=token), 200, 409)
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"helm": "test"}}]}
    expect("commit", call("POST", f"{table}/numbers", commit, token=token), 200)
    loaded = expect("load it", call("GET", f"{table}/numbers", token=token), 200)
    if loaded["metadata"]["properties"].get("helm") != "test":
        sys.exit(f"the commit is not in the table: {loaded['metadata']['properties']}")
    expect("drop it", call("DELETE", f"{table}/numbers?purgeRequested=true", token=token), 204)


if __name__ == "__main__":
    main()
