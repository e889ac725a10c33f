"""Places beyond the rows of tables and views: staged, earlier and released ones; namespaces' are found by an index."""

from django.db import migrations

# a namespace's column is generated: no release that writes namespaces needs to know it
_CREATE = """
    create table reserved_location (
        warehouse_id uuid not null references warehouse (id) on delete cascade,
        location text not null,
        kind text not null check (kind in ('staged', 'earlier', 'released')),
        owner_id uuid not null,
        namespace_id uuid,
        reserved_by text not null default '',
        created_at timestamptz not null default now(),
        expires_at timestamptz,
        check ((kind = 'staged') = (expires_at is not null)),
        primary key (warehouse_id, location)
    );
    create index reserved_location_prefix on reserved_location (warehouse_id, location text_pattern_ops);
    create index reserved_location_owner on reserved_location (owner_id);
    create index reserved_location_staged on reserved_location (namespace_id, reserved_by) where kind = 'staged';
    create index reserved_location_expiry on reserved_location (expires_at) where kind = 'staged';
    alter table namespace add column location text generated always as (rtrim(properties ->> 'location', '/')) stored;
    create index namespace_location on namespace (warehouse_id, location text_pattern_ops);
"""
# what is still to be purged belongs to the namespace that it was dropped from, as it does from now on
_FILL = """
    insert into reserved_location (warehouse_id, location, kind, owner_id, namespace_id)
    select t.warehouse_id, t.lock, 'released', t.entity_id::uuid, n.id
    from task t
    join warehouse w on w.id = t.warehouse_id
    left join namespace n on n.warehouse_id = t.warehouse_id and n.deleted_at is null
        and n.path = t.entity_name[:cardinality(t.entity_name) - 1]
    where t.queue_name = 'tabular_purge' and (t.outcome is null or t.outcome = 'FAILED') and t.lock is not null
        and t.entity_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    on conflict do nothing
"""
_DROP = "drop table reserved_location; drop index namespace_location; alter table namespace drop column location"


class Migration(migrations.Migration):
    dependencies = [("catalog", "0008_deletion_has_begun")]
    operations = [migrations.RunSQL(_CREATE, _DROP), migrations.RunSQL(_FILL, migrations.RunSQL.noop)]
