"""The queries of the hot reads (`catalog.api.hot`): each returns the object's id, and the project's id and epoch.

They run before the decision, so their rows are narrow. Only a list returns names, and only if the given id and epoch,
for which this process has cached that the caller may read the list, are current: the query itself compares them.
"""

from lakewarden.hot.coalescer import Coalescer
from lakewarden.prepared_statements import unless_large
from tenants.models.warehouse import WITH_PROJECT

# an inactive warehouse is not found: Django handles the request and returns the error
_OF = f"join {WITH_PROJECT} on w.id = n.warehouse_id and w.status = 'active'"

# (warehouse id, namespace's path key, name key) → id, kind, version, project, epoch, uuid
TABULARS = Coalescer(f"""
    select k.i, t.id, t.kind, t.version, p.id, p.authz_epoch, t.uuid
    from unnest(%s::uuid[], %s::text[], %s::text[]) with ordinality as k(warehouse, path, name, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path and n.deleted_at is null {_OF}
    join tabular t on t.namespace_id = n.id and t.name_key = k.name and t.deleted_at is null
""")  # noqa: S608 constant joins

# (warehouse id, namespace's path key) → id, path, properties (None: large), project, epoch
NAMESPACES = Coalescer(f"""
    select k.i, n.id, n.path, {unless_large("n.properties")}, p.id, p.authz_epoch
    from unnest(%s::uuid[], %s::text[]) with ordinality as k(warehouse, path, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path and n.deleted_at is null {_OF}
""")  # noqa: S608 constant joins

# (warehouse id, namespace's path key, key after which, how many, known id, known epoch)
# → id, path, project, epoch, whether the names are included, names separated by U+001F
TABLE_NAMES = Coalescer(f"""
    select k.i, n.id, n.path, p.id, p.authz_epoch, (k.id = n.id and k.epoch = p.authz_epoch) is true, l.names
    from unnest(%s::uuid[], %s::text[], %s::text[], %s::bigint[], %s::uuid[], %s::bigint[])
        with ordinality as k(warehouse, path, after, most, id, epoch, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path and n.deleted_at is null {_OF}
    cross join lateral (
        select string_agg(t.name, chr(31) order by t.name_key) as names
        from (
            select name, name_key from tabular
            where namespace_id = n.id and kind = 'table' and deleted_at is null and name_key > k.after
                and k.id = n.id and k.epoch = p.authz_epoch
            order by name_key limit k.most
        ) t
    ) l
""")  # noqa: S608 constant joins

# (warehouse id, key after which, how many, known id, known epoch)
# → id, None, project, epoch, whether the names are included, names of the top namespaces separated by U+001F
TOP_NAMESPACE_NAMES = Coalescer(f"""
    select k.i, w.id, null, p.id, p.authz_epoch, (k.id = w.id and k.epoch = p.authz_epoch) is true, l.names
    from unnest(%s::uuid[], %s::text[], %s::bigint[], %s::uuid[], %s::bigint[])
        with ordinality as k(warehouse, after, most, id, epoch, i)
    join {WITH_PROJECT} on w.id = k.warehouse and w.status = 'active'
    cross join lateral (
        select string_agg(n.name, chr(31) order by n.name_key) as names
        from (
            select path[1] as name, name_key from namespace
            where warehouse_id = w.id and parent_id is null and deleted_at is null and name_key > k.after
                and k.id = w.id and k.epoch = p.authz_epoch
            order by name_key limit k.most
        ) n
    ) l
""")  # noqa: S608 constant joins

# (project id, warehouse's name key) → id, project, epoch, whether requests to its storage are signed
WAREHOUSES = Coalescer(f"""
    select k.i, w.id, p.id, p.authz_epoch,
        w.storage_profile ->> 'type' = 's3' and w.storage_profile ->> 'remote-signing-enabled' is distinct from 'false'
    from unnest(%s::text[], %s::text[]) with ordinality as k(project, name, i)
    join {WITH_PROJECT} on w.project_id = k.project and w.name_key = k.name and w.status = 'active'
""")  # noqa: S608 constant joins

_SIGNED = "k.i, t.id, t.kind, t.location, p.id, p.authz_epoch, t.uuid, w.version, w.storage_secret"

# (warehouse id, namespace's path key, name key)
# → id, kind, location, project, epoch, uuid, version of the warehouse, its secret
SIGNED_BY_NAME = Coalescer(f"""
    select {_SIGNED}
    from unnest(%s::uuid[], %s::text[], %s::text[]) with ordinality as k(warehouse, path, name, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path and n.deleted_at is null {_OF}
    join tabular t on t.namespace_id = n.id and t.name_key = k.name and t.deleted_at is null and t.kind = 'table'
""")  # noqa: S608 constant joins

# (warehouse id, locations around the file, separated by U+001F) → as by name
SIGNED_BY_LOCATION = Coalescer(f"""
    select {_SIGNED}
    from unnest(%s::uuid[], %s::text[]) with ordinality as k(warehouse, places, i)
    join tabular t on t.warehouse_id = k.warehouse and t.location = any(string_to_array(k.places, chr(31)))
        and t.deleted_at is null
    join {WITH_PROJECT} on w.id = t.warehouse_id and w.status = 'active'
""")  # noqa: S608 constant joins

# (warehouse id, uuid) → as by name
SIGNED_BY_ID = Coalescer(f"""
    select {_SIGNED}
    from unnest(%s::uuid[], %s::uuid[]) with ordinality as k(warehouse, uuid, i)
    join tabular t on t.warehouse_id = k.warehouse and t.uuid = k.uuid and t.deleted_at is null
    join {WITH_PROJECT} on w.id = t.warehouse_id and w.status = 'active'
""")  # noqa: S608 constant joins
