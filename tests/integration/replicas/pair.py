"""Two `lakewarden serve` on one database and one warehouse's directory, and who calls them; for the tests of this lane."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from standalone.commands import AUDIENCE
from standalone.issuer.clients import Client, Clients
from standalone.issuer.state import StateDir
from tests.integration.replicas.exchange import Answer, Call, Exchange
from tests.servers.issuer import RunningIssuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

T = TypeVar("T")

PEOPLE = 100
"""As many as one change of grants may name."""
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Person:
    token: str
    name: str

    @property
    def id(self) -> str:
        return f"oidc~{self.name}"

    def entry(self, privilege: str) -> dict[str, Any]:
        """The grant of a privilege to this person."""
        return {"privilege": privilege, "principal": {"user": self.id}}


@dataclass(frozen=True)
class Replica:
    server: LakewardenServer
    pair: "Pair" = field(repr=False)

    @property
    def port(self) -> int:
        return int(self.server.uri.rpartition(":")[2])

    def call(self, person: Person, method: str, path: str, json: Any = None, **headers: str) -> Call:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Call(self.port, method, path, person.token, json, named)

    def ask(self, person: Person, method: str, path: str, json: Any = None, **headers: str) -> Answer:
        return self.pair.ask([self.call(person, method, path, json, **headers)])[0]

    def done(self, method: str, path: str, json: Any = None) -> Any:
        """The content of the answer to the administrator, who must succeed."""
        answer = self.ask(self.pair.admin, method, path, json)
        assert answer.status in {200, 201, 204}, (method, path, answer)
        return answer.json() if answer.body else None


class Pair:
    """Servers `a` and `b`; `admin` may do everything, the `people` nothing but what they are granted."""

    def __init__(
        self,
        a: LakewardenServer,
        b: LakewardenServer,
        *,
        admin: Person,
        people: Sequence[Person],
        runner: asyncio.Runner,
    ) -> None:
        self.a, self.b = Replica(a, self), Replica(b, self)
        self.admin, self.people = admin, list(people)
        self.exchange = Exchange()
        self._runner = runner

    @property
    def both(self) -> tuple[Replica, Replica]:
        return self.a, self.b

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def ask(self, calls: Sequence[Call]) -> list[Answer]:
        return self.run(self.exchange.answers(calls))

    def statuses(self, person: Person, method: str, path: str, json: Any = None) -> tuple[int, int]:
        """What both servers answer to the same request, sent at once."""
        first, second = self.ask([each.call(person, method, path, json) for each in self.both])
        return first.status, second.status


@dataclass(frozen=True)
class Lake:
    """A warehouse of its own; `grants` are paths below /management."""

    pair: Pair
    name: str
    id: str

    @classmethod
    def made(cls, pair: Pair) -> "Lake":
        name = f"lake-{next(_numbers)}"
        profile = {"type": "local", "base-path": str(pair.a.server.local_root / name)}
        body = {"warehouse-name": name, "storage-profile": profile}
        return cls(pair, name, pair.a.done("POST", "/management/v1/warehouse", body)["id"])

    @property
    def config(self) -> str:
        return f"/catalog/v1/config?warehouse={self.name}"

    @property
    def managed(self) -> str:
        return f"/management/v1/warehouse/{self.id}"

    def path(self, *segments: str) -> str:
        """`path("namespaces", "a\\x1fb", "tables")`."""
        return "/".join([f"/catalog/v1/{self.id}", *(quote(each, safe="") for each in segments)])

    def tables(self, namespace: str, *rest: str) -> str:
        return self.path("namespaces", namespace, "tables", *rest)

    def add_namespace(self, *path: str) -> str:
        """Its id."""
        self.pair.a.done("POST", self.path("namespaces"), {"namespace": list(path)})
        told = self.pair.a.done("GET", self.path("namespaces") + "?returnUuids=true" + _parent(path))
        return str(dict(zip(map(tuple, told["namespaces"]), told["namespace-uuids"], strict=True))[path])

    def add_table(self, namespace: str, name: str) -> str:
        """Its id."""
        self.pair.a.done("POST", self.tables(namespace), {"name": name, "schema": SCHEMA})
        told = self.pair.a.done("GET", self.tables(namespace) + "?returnUuids=true")
        names = [each["name"] for each in told["identifiers"]]
        return str(told["table-uuids"][names.index(name)])


def _parent(path: Sequence[str]) -> str:
    return f"&parent={quote(chr(31).join(path[:-1]))}" if len(path) > 1 else ""


def add_clients(state_dir: Path, *, people: int = PEOPLE) -> Callable[[RunningIssuer], list[Person]]:
    """Make the issuer know so many clients; returns what gets their tokens of the running issuer."""
    state = StateDir(state_dir)
    with state.locked():
        clients = Clients(state).ensure(*(_client(f"person-{number:03}") for number in range(people)))

    def signed_in(issuer: RunningIssuer) -> list[Person]:
        return [signed_in_as(issuer, client.client_id, str(client.client_secret)) for client in clients]

    return signed_in


def _client(name: str) -> Client:
    return Client(
        client_id=name,
        client_secret=secrets.token_urlsafe(16),
        grant_types=("client_credentials",),
        scopes=("catalog",),
        default_scopes=("catalog",),
    )


def signed_in_as(issuer: RunningIssuer, name: str, secret: str) -> Person:
    return Person(issuer.token_of(name, secret), name)


@contextmanager
def started(
    issuer: RunningIssuer,
    people: Sequence[Person],
    *,
    settings: Mapping[str, str] | None = None,
    a_through: Callable[[str], str] = str,
    b_through: Callable[[str], str] = str,
) -> Iterator[Pair]:
    """Both servers, running and bootstrapped; all people have called once, so that they can be granted something.

    `settings` are for both; `a_through` and `b_through` make the address by which each reaches the database.
    """
    common = {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
    }
    own = issuer.identities.admin
    admin = signed_in_as(issuer, own.client_id, own.client_secret)
    with prepared({**common, **(settings or {})}) as a, asyncio.Runner() as runner:
        url = a.settings["LAKEWARDEN__DATABASE__URL"]
        # so that its sessions differ from the other server's
        ours = a.settings | {"LAKEWARDEN__DATABASE__URL": f"{b_through(url)}?application_name=replica_b"}
        b = LakewardenServer(ours, a.local_root, a.log.with_name("second.log"))
        a.settings["LAKEWARDEN__DATABASE__URL"] = a_through(url)
        a.bootstrap(admin.id)
        try:
            a.start()
            b.start()
            pair = Pair(a, b, admin=admin, people=people, runner=runner)
            known = pair.ask([pair.a.call(each, "GET", "/management/v1/whoami") for each in people])
            assert {answer.status for answer in known} == {200}
            yield pair
            pair.run(pair.exchange.close())
        finally:
            b.stop()
