"""What is asked of the management API's routes; see `cases`."""

from typing import Any

from tests.integration.catalog.lake import SCHEMA
from tests.integration.isolation.cases import OPEN, OPERATORS, Case

_M = "/management/v1"
_W = _M + "/warehouse/{warehouse_id}"
_IN = {
    **{kind: f"{_W}/{kind}/{{{kind}_id}}" for kind in ("namespace", "table", "view")},
    "generic-table": _W + "/generic-table/{generic_table_id}",
}
_PLACES = {"server": _M + "/server", "project": _M + "/project", "warehouse": _W, **_IN}
_TAG = _M + "/tag-definition/{tag_definition_id}"
_SCOPE = ["warehouse", "namespace", "table", "view", "generic-table", "column"]
_TAGGED = (_W, *_IN.values(), _IN["table"] + "/column/{column_name}")
_GOVERNED = (_W, *(place for kind, place in _IN.items() if kind != "generic-table"))
_OWN_W = _M + "/warehouse/{own_warehouse}"
_PROFILE = {"type": "local", "base-path": "{free}"}
_SAME_PROFILE = {"type": "local", "base-path": "{base}"}
_ALL = {"type": "all"}


def _check(**operation: Any) -> Case:
    return Case({"checks": [{"operation": operation}]})


def _checks() -> list[Case]:
    by_id = {
        "namespace": {"namespace-id": "{namespace_id}"},
        "table": {"table-id": "{table_id}"},
        "view": {"view-id": "{view_id}"},
        "generic-table": {"generic-table-id": "{generic_table_id}"},
    }
    by_name = {
        "table": {"table": "{table}"},
        "view": {"view": "{view}"},
        "generic-table": {"generic-table": "{generic_table}"},
        "namespace": {},
    }
    asked: list[dict[str, dict[str, Any]]] = [
        {"project": {"project-id": "{project}"}},
        {"warehouse": {"warehouse-id": "{warehouse}"}},
    ]
    asked += [{kind: {"warehouse-id": "{warehouse}", **named}} for kind, named in by_id.items()]
    asked += [
        {kind: {"warehouse-id": "{warehouse}", "namespace": ["{namespace}"], **named}}
        for kind, named in by_name.items()
    ]
    of_tag = {"tag-definition": {"action": "apply", "tag-definition-id": "{tag}"}}
    checks = [{kind: {"action": "include_in_list", **about}} for each in asked for kind, about in each.items()]
    checks.append(of_tag)
    somebody = {"identity": {"user": "{user}"}, "operation": checks[1]}
    a_role = {"identity": {"role": "{role}"}, "operation": checks[1]}
    own = {"action": "include_in_list", "warehouse-id": "{own_warehouse}"}
    return [
        Case({"checks": [{"operation": each} for each in checks]}),
        *(Case({"checks": [{"operation": each}], "error-on-not-found": True}) for each in checks),
        Case({"checks": [somebody, a_role], "error-on-not-found": True}),
        Case(
            {
                "checks": [{"identity": {"role": "{role}"}, "operation": {"warehouse": own}}],
                "error-on-not-found": True,
            },
            owner=None,
        ),
    ]


def _tasks(place: str, task: str, elsewhere: str) -> dict[str, list[Case]]:
    """`task` lies there, `elsewhere` another one of the same project."""
    queue = "task_log_cleanup" if place.endswith("/project") else "tabular_purge"
    queue_path = f"{place}/task-queue/{queue}/config"

    def control(name: str, **more: Any) -> Case:
        return Case({"action": {"action-type": "cancel"}, "task-ids": [f"{{{name}}}"]}, **more)

    own = f"{_OWN_W}/task" if place == _W else f"{place}/task"
    return {
        f"POST {place}/task/list": [Case({}), Case({"page-size": 1})],
        f"POST {place}/task/control": [
            control(task),
            control(elsewhere, owner=404),
            control(task, path=f"{own}/control", owner=None),
        ],
        f"GET {place}/task/by-id/{{task_id}}": [
            Case(path=f"{place}/task/by-id/{{{task}}}"),
            Case(path=f"{place}/task/by-id/{{{elsewhere}}}", owner=404),
            Case(path=f"{own}/by-id/{{{task}}}", owner=None),
        ],
        f"GET {place}/task-queue/{{queue_name}}/config": [Case(path=queue_path)],
        f"POST {place}/task-queue/{{queue_name}}/config": [Case({"queue-config": {}}, path=queue_path)],
    }


_GRANT = {"writes": [{"privilege": "select", "principal": {"user": "oidc~nobody"}}]}
_GRANT_ROLE = {"writes": [{"privilege": "select", "principal": {"role": "{role}"}}]}

_MANAGEMENT: dict[str, list[Case]] = {
    f"GET {_M}/info": [OPEN],
    f"GET {_M}/openapi.json": [OPEN],
    f"GET {_M}/openapi.yaml": [OPEN],
    f"POST {_M}/bootstrap": [Case({"accept-terms-of-use": True}, open=True, owner=None)],
    f"GET {_M}/whoami": [OPEN],
    f"GET {_M}/audit": [Case(), Case(query="object-id={table_id}"), Case(query="actor={user}&pageSize=1")],
    f"GET {_M}/server/audit": [OPERATORS, Case(query="project-id={project}", owner=403)],
    f"GET {_M}/events": [Case(), Case(query="object-id={table_id}")],
    f"GET {_M}/server/events": [OPERATORS],
    f"GET {_M}/server/metrics": [OPERATORS],
    f"GET {_M}/server/event-sink": [OPERATORS],
    f"POST {_M}/server/event-sink/{{sink}}/replay": [
        Case({"since": "2026-11-21T08:00:00Z"}, path=f"{_M}/server/event-sink/lake/replay", owner=403)
    ],
    f"GET {_M}/server/event-dead-letter": [OPERATORS],
    f"GET {_M}/server/event-dead-letter/{{letter_id}}": [Case(path=f"{_M}/server/event-dead-letter/17", owner=403)],
    f"POST {_M}/server/event-dead-letter/send": [Case({"sink": "lake"}, owner=403)],
    f"POST {_M}/server/event-dead-letter/drop": [Case({"sink": "lake"}, owner=403)],
    f"GET {_M}/grants/grantable-privileges": [OPEN],
    f"GET {_M}/project-list": [OPEN],
    f"GET {_M}/user": [OPERATORS],
    f"POST {_M}/user": [Case({"id": "{user}", "name": "x", "user-type": "human"}, owner=403)],
    f"GET {_M}/user/{{user_id}}": [Case(owner=404)],
    f"PUT {_M}/user/{{user_id}}": [Case({"name": "x", "user-type": "human"}, owner=404)],
    f"DELETE {_M}/user/{{user_id}}": [Case(owner=404)],
    f"GET {_M}/user/{{user_id}}/actions": [Case(owner=404)],
    f"GET {_M}/user/{{user_id}}/roles": [Case()],
    f"GET {_M}/user/{{user_id}}/roles/transitive": [Case()],
    f"GET {_M}/server/actions": [OPEN, Case(query="principalRole={role}", owner=403)],
    f"GET {_M}/project/actions": [Case(), Case(query="principalRole={role}"), Case(query="principalUser={user}")],
    f"GET {_M}/role/{{role_id}}/actions": [Case()],
    f"GET {_W}/actions": [
        Case(),
        Case(query="principalUser={user}"),
        Case(query="principalRole={role}", path=f"{_OWN_W}/actions", owner=None),
    ],
    **{f"GET {place}/actions": [Case()] for place in _IN.values()},
    f"POST {_M}/action/batch-check": _checks(),
    f"POST {_M}/permissions/check": [
        Case({"operation": {"table": {"action": "drop", "warehouse-id": "{warehouse}", "table-id": "{table_id}"}}})
    ],
    f"GET {_M}/project": [Case()],
    f"POST {_M}/project": [
        Case({"project-name": "fresh"}, owner=403),
        Case({"project-name": "fresh", "project-id": "{project}"}, owner=403),
    ],
    f"DELETE {_M}/project": [Case(owner=409)],
    f"POST {_M}/project/rename": [Case({"new-name": "renamed"})],
    f"GET {_M}/default-project": [Case()],
    f"DELETE {_M}/default-project": [Case(owner=409)],
    f"POST {_M}/default-project/rename": [Case({"new-name": "renamed"})],
    f"GET {_M}/project/{{project_id}}": [Case()],
    f"DELETE {_M}/project/{{project_id}}": [Case(owner=409)],
    f"POST {_M}/project/{{project_id}}/rename": [Case({"new-name": "renamed"})],
    f"POST {_M}/endpoint-statistics": [
        Case({"warehouse": _ALL}),
        Case({"warehouse": {"type": "unmapped"}}),
        Case({"warehouse": {"type": "warehouse-id", "id": "{warehouse}"}}),
    ],
    f"POST {_M}/search/user": [Case({"search": "member"})],
    f"POST {_M}/search/role": [Case({"search": "readers"})],
    f"GET {_M}/role": [
        Case(),
        Case(query="roleIds={role}"),
        Case(query="projectId={project}", with_header=False),
        Case(query="pageSize=1"),
    ],
    f"POST {_M}/role": [Case({"name": "fresh"}), Case({"name": "fresh", "project-id": "{project}"}, with_header=False)],
    f"POST {_M}/role/provision": [Case({"roles": [{"name": "provisioned", "members": [{"role": "{role}"}]}]})],
    f"GET {_M}/role/{{role_id}}": [Case()],
    f"POST {_M}/role/{{role_id}}": [Case({"name": "renamed"})],
    f"DELETE {_M}/role/{{role_id}}": [Case()],
    f"GET {_M}/role/{{role_id}}/metadata": [Case()],
    f"PUT {_M}/role/{{role_id}}/source-system": [Case({"provider-id": "oidc", "source-id": "x"})],
    f"GET {_M}/role/{{role_id}}/members": [Case(), Case(query="type=user")],
    f"POST {_M}/role/{{role_id}}/members": [
        Case({"members": [{"user": "oidc~nobody"}]}),
        Case({"members": [{"role": "{role}"}]}, path=f"{_M}/role/{{own_role}}/members", owner=None),
    ],
    f"GET {_M}/role/{{role_id}}/members/transitive": [Case()],
    f"DELETE {_M}/role/{{role_id}}/members/{{kind}}/{{member_id}}": [
        Case(path=f"{_M}/role/{{role}}/members/user/{{user}}"),
        Case(path=f"{_M}/role/{{role}}/members/role/{{inner_role}}"),
    ],
    f"GET {_M}/role/{{role_id}}/member-of": [Case()],
    f"GET {_M}/role/{{role_id}}/member-of/transitive": [Case()],
    f"GET {_M}/tag-definition": [Case(), Case(query="name=shared-tag"), Case(query="pageSize=1")],
    f"POST {_M}/tag-definition": [Case({"name": "fresh", "scope": ["table"], "value-kind": "marker"})],
    f"GET {_TAG}": [Case()],
    f"POST {_TAG}": [Case({"name": "shared-tag", "scope": _SCOPE, "description": "changed"})],
    f"DELETE {_TAG}": [Case()],
    f"GET {_TAG}/actions": [Case(), Case(query="principalUser={user}")],
    f"GET {_TAG}/attachments": [Case(), Case(query="warehouseId={warehouse}")],
    f"GET {_TAG}/grants": [Case()],
    f"POST {_TAG}/grants": [Case({"writes": [{"privilege": "apply", "principal": {"user": "oidc~nobody"}}]})],
    f"GET {_TAG}/grants/grantable-privileges": [Case()],
    **{f"GET {place}/contract": [Case()] for place in _GOVERNED},
    **{f"PUT {place}/contract": [Case({"forbidden-properties": ["never"]})] for place in _GOVERNED},
    **{f"DELETE {place}/contract": [Case()] for place in _GOVERNED},
    **{f"GET {place}/contract/effective": [Case()] for place in _GOVERNED[1:]},
    **{f"POST {place}/contract/check": [Case({"schema": SCHEMA})] for place in _GOVERNED[1:]},
    **{f"GET {place}/tags": [Case(), Case(query="effective=true")] for place in _TAGGED},
    **{f"PUT {place}/tags/{{tag_name}}": [Case({})] for place in _TAGGED},
    **{f"DELETE {place}/tags/{{tag_name}}": [Case()] for place in _TAGGED},
    f"GET {_IN['table']}/column-tags": [Case()],
    f"GET {_M}/warehouse": [Case(), Case(query="projectId={project}", with_header=False)],
    f"POST {_M}/warehouse": [
        Case({"warehouse-name": "fresh", "storage-profile": _PROFILE}),
        Case({"warehouse-name": "fresh", "storage-profile": _PROFILE, "project-id": "{project}"}, with_header=False),
    ],
    f"POST {_M}/warehouse-creation-validation": [
        Case({"warehouse-name": "fresh", "storage-profile": _PROFILE}),
        Case({"warehouse-name": "fresh", "storage-profile": _PROFILE, "project-id": "{project}"}, with_header=False),
    ],
    f"GET {_W}": [Case()],
    f"DELETE {_W}": [Case(owner=409), Case(query="force=true", owner=409)],
    f"POST {_W}/rename": [Case({"new-name": "renamed"})],
    f"POST {_W}/activate": [Case()],
    f"POST {_W}/deactivate": [Case()],
    f"POST {_W}/delete-profile": [Case({"delete-profile": {"type": "hard"}})],
    f"POST {_W}/format-version-policy": [Case({"allowed-format-versions": [2, 3]})],
    f"POST {_W}/protection": [Case({"protected": True})],
    f"GET {_W}/protection": [Case()],
    f"POST {_W}/managed-by": [Case({"managed-by": "self-managed"}, owner=403)],
    f"POST {_W}/storage": [Case({"storage-profile": _SAME_PROFILE})],
    f"POST {_W}/storage-credential": [Case({}, owner=400)],
    f"POST {_W}/storage/validate-profile": [Case({"storage-profile": _PROFILE})],
    f"POST {_W}/storage/validate-credential": [Case({})],
    f"POST {_W}/storage/validate-access": [Case({})],
    f"GET {_W}/statistics": [Case()],
    f"GET {_W}/maintenance": [Case()],
    f"GET {_W}/deleted-tabulars": [Case(), Case(query="namespaceId={namespace_id}")],
    f"GET {_W}/deleted-namespaces": [Case()],
    f"POST {_W}/deleted-tabulars/undrop": [
        Case({"targets": [{"type": "table", "id": "{shelved_id}"}]}),
        Case({"targets": [{"type": "view", "id": "{view_id}"}]}, owner=404),
        Case({"targets": [{"type": "generic-table", "id": "{generic_table_id}"}]}, owner=404),
        Case({"targets": [{"type": "namespace", "id": "{namespace_id}"}]}, owner=404),
    ],
    f"POST {_W}/search-tabular": [Case({"search": "shared"}), Case({"search": "{table_id}"})],
    **_tasks(_W, "task", "project_task"),
    **_tasks(f"{_M}/project", "project_task", "task"),
    f"POST {_W}/task-queue/{{queue_name}}/schedule": [
        Case({}, path=f"{_W}/task-queue/tabular_purge/schedule", owner=400)
    ],
    f"GET {_IN['namespace']}/protection": [Case()],
    f"POST {_IN['namespace']}/protection": [Case({"protected": True})],
    f"POST {_IN['namespace']}/move": [
        Case({"destination": ["fresh"], "force": True}),
        Case({"destination": ["{namespace}"]}, path=f"{_W}/namespace/{{inner_id}}/move", owner=409),
    ],
    f"GET {_IN['table']}/protection": [Case()],
    f"POST {_IN['table']}/protection": [Case({"protected": True})],
    f"GET {_IN['view']}/protection": [Case()],
    f"POST {_IN['view']}/protection": [Case({"protected": True})],
    f"GET {_IN['generic-table']}/protection": [Case()],
    f"POST {_IN['generic-table']}/protection": [Case({"protected": True})],
    f"GET {_M}/warehouse/{{warehouse}}/table/{{table}}/metrics-reports": [
        Case(path=f"{_W}/table/{{table_id}}/metrics-reports")
    ],
    f"GET {_M}/grants": [Case(), Case(query="principalUser={user}"), Case(query="principalRole={role}")],
    **{f"GET {place}/grants": [Case()] for place in list(_PLACES.values())[1:]},
    **{f"POST {place}/grants": [Case(_GRANT)] for place in _IN.values()},
    **{f"GET {place}/grants/grantable-privileges": [Case()] for place in list(_PLACES.values())[1:]},
    f"GET {_PLACES['server']}/grants/grantable-privileges": [OPEN],
    f"GET {_M}/server/grants": [OPERATORS],
    f"POST {_M}/server/grants": [
        Case({"writes": [{"privilege": "operator", "principal": {"user": "{user}"}}]}, owner=403)
    ],
    f"POST {_M}/project/grants": [Case(_GRANT), Case(_GRANT_ROLE)],
    f"POST {_W}/grants": [Case(_GRANT), Case(_GRANT_ROLE, path=f"{_OWN_W}/grants", owner=None)],
}


def management() -> dict[str, list[Case]]:
    """By their longer addresses; each is also served without `/v1`."""
    return _MANAGEMENT | _permissions() | _explanations()


def _explanations() -> dict[str, list[Case]]:
    told: dict[str, list[Case]] = {}
    for kind, place in {**_PLACES, "role": _M + "/role/{role_id}", "tag": _TAG}.items():
        if kind == "server":
            told[f"GET {place}/explanation"] = [Case(query="action=create_project", open=True, owner=None)]
            told[f"GET {place}/who-may"] = [Case(query="action=create_project", owner=403)]
            continue
        action = "action=read" if kind in {"role", "tag"} else "action=get_metadata"
        told[f"GET {place}/explanation"] = [
            Case(query=action),
            Case(query=f"{action}&principalUser={{user}}"),
            Case(query=f"{action}&principalRole={{role}}"),
        ]
        told[f"GET {place}/who-may"] = [Case(query=action), Case(query=f"{action}&expand=true&pageSize=1")]
    foreign = Case(query="action=use&principalRole={role}", path=f"{_OWN_W}/explanation", owner=None)
    told[f"GET {_W}/explanation"].append(foreign)
    return told


def _permissions() -> dict[str, list[Case]]:
    """The older form of grants."""
    by_id, project = f"{_M}/permissions/namespace/{{namespace_id}}", f"{_M}/permissions/project/{{project_id}}"
    places = [place.replace(_M, f"{_M}/permissions", 1) for place in _PLACES.values() if place != _PLACES["server"]]
    places += [f"{_M}/permissions/role/{{role_id}}", by_id, project]
    told: dict[str, list[Case]] = {}
    for place in places:
        kind = "ownership" if place.endswith("{role_id}") else "describe"
        # what is there already is refused, and two paths lead to the same object
        write = {"writes": [{"type": kind, "user": "{user}" if place in {by_id, project} else "oidc~nobody"}]}
        told |= {
            f"GET {place}/assignments": [Case()],
            f"POST {place}/assignments": [Case(write)],
            f"GET {place}/access": [Case()],
            f"GET {place}/authorizer-actions": [Case()],
        }
        if place == project:
            told.pop(f"GET {place}/authorizer-actions")
        if place == by_id or place.endswith(("{warehouse_id}", "/namespace/{namespace_id}")):
            told[f"GET {place}"] = [Case()]
            told[f"POST {place}/managed-access"] = [Case({"managed-access": True})]
    tag = f"{_M}/permissions/tag/{{tag_definition_id}}/assignments"
    told |= {f"GET {tag}": [Case()], f"POST {tag}": [Case({"writes": [{"type": "apply", "user": "{user}"}]})]}
    server = f"{_M}/permissions/server"
    own_role = {"writes": [{"type": "describe", "role": "{role}"}]}
    told[f"POST {_M}/permissions/project/assignments"].append(Case(own_role))
    told[f"POST {_M}/permissions/warehouse/{{warehouse_id}}/assignments"].append(
        Case(own_role, path=f"{_M}/permissions/warehouse/{{own_warehouse}}/assignments", owner=None)
    )
    return told | {
        f"GET {server}/assignments": [OPERATORS],
        f"POST {server}/assignments": [Case({"writes": [{"type": "admin", "user": "{user}"}]}, owner=403)],
        f"GET {server}/access": [OPEN],
        f"GET {server}/authorizer-actions": [OPEN],
    }
