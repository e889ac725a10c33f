"""Fills the database of `server` with many tables and rights on them, by SQL: the API's rows, without its work."""

from dataclasses import dataclass

import psycopg

from benchmarks.authorization.server import ADMIN, InProcess

PROJECT = "00000000-0000-0000-0000-000000000000"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@dataclass(frozen=True)
class Filled:
    """`count` tables `t0` … in warehouse `id`, in namespaces `n0` … of `each` tables."""

    server: InProcess
    id: str
    name: str
    count: int
    each: int

    @property
    def base(self) -> str:
        return f"/catalog/v1/{self.id}/namespaces"

    def allow(self, principal: str, *, step: int, privilege: str = "select") -> None:
        """Give the principal a right on every `step`-th table."""
        run(
            self.server.url,
            _ALLOW,
            {"who": principal, "privilege": privilege, "step": step, "project": PROJECT, "warehouse": self.id},
        )


def filled(server: InProcess, name: str, *, count: int, each: int) -> Filled:
    """A new warehouse with many tables, of which the administrator has all rights by the warehouse."""
    profile = {"type": "local", "base-path": str(server.directory / name)}
    body = {"warehouse-name": name, "storage-profile": profile}
    identifier = server.call(ADMIN, "POST", "/management/v1/warehouse", body)["id"]
    told = {"warehouse": identifier, "last": count - 1, "each": each, "namespaces": count // each - 1}
    for statement in _FILL:
        run(server.url, statement, told)
    return Filled(server, identifier, name, count, each)


def known(server: InProcess, *names: str) -> None:
    """Have them call once, so that they are users."""
    for name in names:
        server.call(name, "GET", "/management/v1/whoami")


def run(url: str, statement: str, parameters: dict[str, object]) -> None:
    """Once, and have the planner know the new rows; decisions of before are stale."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode(), parameters)
        connection.execute(_NEXT_EPOCH)
        connection.execute(b"vacuum analyze")


def forget(url: str) -> None:
    """Make all that is known of rights stale, as any change of a right in the project does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_NEXT_EPOCH)


_NEXT_EPOCH = b"update project set authz_epoch = authz_epoch + 1"


_FILL = (
    """
    insert into namespace (id, warehouse_id, path, path_key, name_key, lineage, properties, version, created_at)
    select md5(%(warehouse)s || 'n' || g)::uuid, %(warehouse)s::uuid, array['n' || g], 'n' || g, 'n' || g,
           array[md5(%(warehouse)s || 'n' || g)::uuid], '{}', 0, now()
    from generate_series(0, %(namespaces)s) g
    """,
    """
    insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location,
                         version, created_at, updated_at)
    select md5(%(warehouse)s || 't' || g)::uuid, %(warehouse)s::uuid, md5(%(warehouse)s || 'n' || g / %(each)s)::uuid,
           'table', 't' || g, 't' || g, md5(%(warehouse)s || 't' || g)::uuid,
           'file:///' || %(warehouse)s || '/' || g, 'file:///m', 1, now(), now()
    from generate_series(0, %(last)s) g
    """,
)
_ALLOW = """
    insert into authz_grant (principal_id, object_type, object_id, privilege, project_id, ancestors, granted_by,
                             created_at)
    select %(who)s, 'table', t.id::text, %(privilege)s, %(project)s,
           array[%(project)s, t.warehouse_id::text, t.namespace_id::text], 'oidc~admin', now()
    from tabular t where t.warehouse_id = %(warehouse)s::uuid and t.name ~ '^t[0-9]+$'
      and substr(t.name, 2)::int %% %(step)s = 0
"""
