//! The database: statements prepared once for each of a few connections, which take turns.

use std::cell::Cell;

use tokio::task::spawn_local;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row, Statement};
use uuid::Uuid;

use crate::document::Document;

const CONNECTIONS: usize = 8;

const TABLE: &str = "
    from warehouse w
    join project p on p.id = w.project_id
    join namespace n on n.warehouse_id = w.id
    join tabular t on t.namespace_id = n.id
    join tabular_document d on d.tabular_id = t.id
    where w.id = $1::text::uuid and w.status = 'active' and n.path_key = $2 and t.name_key = $3
      and t.kind = 'table' and t.deleted_at is null";

const PLACE: &str = "
    select n.id::text, p.id::text from namespace n
    join warehouse w on w.id = n.warehouse_id join project p on p.id = w.project_id
    where w.id = $1::text::uuid and w.status = 'active' and n.path_key = $2 and n.deleted_at is null";

// in both statements: $1 id, $2 project, $3 actor, $4 request id, $5 details of the audit entry and the event,
// $6 metadata file, $7 document, $8 its CRC, $9 its length
const RECORDED: &str = "
    audited as (
        insert into audit_entry (at, actor, assumed_role, action, object_type, object_id, project_id, outcome,
                                 request_id, user_agent, details)
        select now(), $3, '', '{action}', 'table', $1, $2, 'done', $4, '', $5::text::jsonb from changed
    )
    insert into outbox_event (created_at, id, type, project_id, object_type, object_id, actor, request_id, data)
    select now(), gen_random_uuid(), '{action}', $2, 'table', $1, $3, $4, $5::text::jsonb from changed";

const SWAP: &str = "
    with changed as (
        update tabular set version = version + 1, metadata_location = $6, updated_at = now()
        where id = $1::text::uuid and version = $10 and deleted_at is null returning id, version
    ), stored as (
        update tabular_document d set version = changed.version, content = $7, crc = $8, length = $9
        from changed where d.tabular_id = changed.id
    ), ";

const ADD: &str = "
    with changed as (
        insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location,
                             version, created_at, updated_at)
        values ($1::text::uuid, $10::text::uuid, $11::text::uuid, 'table', $12, $12, $1::text::uuid, $13, $6, 1,
                now(), now())
        on conflict do nothing returning id
    ), stored as (
        insert into tabular_document (tabular_id, version, content, crc, length)
        select id, 1, $7, $8, $9 from changed
    ), owned as (
        insert into authz_grant (object_type, object_id, project_id, ancestors, granted_by, principal_id, privilege,
                                 created_at)
        select 'table', $1, $2, array[$10, $11], $3, $3, 'ownership', now() from changed
    ), ";

struct Prepared {
    client: Client,
    load: Statement,
    exists: Statement,
    base: Statement,
    place: Statement,
    swap: Statement,
    add: Statement,
}

/// A table's row and document, as a commit starts from them.
pub struct Base {
    pub id: String,
    pub version: i64,
    pub location: String,
    pub file: String,
    pub project: String,
    pub document: Document,
}

pub struct Place {
    pub namespace: String,
    pub project: String,
}

/// What a commit and a creation have in common.
pub struct Change<'a> {
    pub id: &'a str,
    pub project: &'a str,
    pub actor: &'a str,
    pub file: &'a str,
    pub document: &'a Document,
}

pub struct NewTable<'a> {
    pub warehouse: &'a str,
    pub place: &'a Place,
    pub namespace: &'a str,
    pub name: &'a str,
    pub location: &'a str,
}

pub struct Database {
    connections: Vec<Prepared>,
    turn: Cell<usize>,
}

impl Database {
    pub async fn connect(url: &str) -> Self {
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            connections.push(prepared(url).await);
        }
        Self {
            connections,
            turn: Cell::new(0),
        }
    }

    pub async fn load(&self, warehouse: &str, namespace: &str, table: &str) -> Option<Document> {
        let connection = self.next();
        let row = one(
            &connection.client,
            &connection.load,
            warehouse,
            namespace,
            table,
        )
        .await?;
        Some(document(&row, 5))
    }

    pub async fn exists(&self, warehouse: &str, namespace: &str, table: &str) -> bool {
        let connection = self.next();
        one(
            &connection.client,
            &connection.exists,
            warehouse,
            namespace,
            table,
        )
        .await
        .is_some()
    }

    pub async fn base(&self, warehouse: &str, namespace: &str, table: &str) -> Option<Base> {
        let connection = self.next();
        let row = one(
            &connection.client,
            &connection.base,
            warehouse,
            namespace,
            table,
        )
        .await?;
        Some(Base {
            id: row.get(0),
            version: row.get(1),
            location: row.get(2),
            file: row.get(3),
            project: row.get(4),
            document: document(&row, 5),
        })
    }

    pub async fn place(&self, warehouse: &str, namespace: &str) -> Option<Place> {
        let connection = self.next();
        let found = connection
            .client
            .query_opt(&connection.place, &[&warehouse, &namespace])
            .await;
        let row = found.expect("the look-up failed")?;
        Some(Place {
            namespace: row.get(0),
            project: row.get(1),
        })
    }

    /// Move the pointer with document, audit and event; false when somebody else was first.
    pub async fn swap(
        &self,
        change: &Change<'_>,
        version: i64,
        namespace: &str,
        name: &str,
        warehouse: &str,
    ) -> bool {
        let details = details(change, namespace, name, warehouse, version + 1);
        self.write(|prepared| &prepared.swap, change, &details, &[&version])
            .await
    }

    /// Insert row, document, owner, audit and event; false when the name is taken.
    pub async fn add(&self, change: &Change<'_>, table: &NewTable<'_>) -> bool {
        let details = details(change, table.namespace, table.name, table.warehouse, 1);
        let more: [&(dyn ToSql + Sync); 4] = [
            &table.warehouse,
            &table.place.namespace,
            &table.name,
            &table.location,
        ];
        self.write(|prepared| &prepared.add, change, &details, &more)
            .await
    }

    /// Whether the statement has written its rows; its parameters from $10 on are `more`.
    async fn write(
        &self,
        statement: fn(&Prepared) -> &Statement,
        change: &Change<'_>,
        details: &str,
        more: &[&(dyn ToSql + Sync)],
    ) -> bool {
        let connection = self.next();
        let document = change.document;
        let (crc, length) = (i64::from(document.crc), i64::from(document.length));
        let request = Uuid::new_v4().to_string();
        let common: [&(dyn ToSql + Sync); 9] = [
            &change.id,
            &change.project,
            &change.actor,
            &request,
            &details,
            &change.file,
            &document.content,
            &crc,
            &length,
        ];
        let parameters = [&common[..], more].concat();
        let done = connection
            .client
            .execute(statement(connection), &parameters)
            .await;
        done.expect("the statement failed") == 1
    }

    fn next(&self) -> &Prepared {
        let turn = self.turn.get();
        self.turn.set((turn + 1) % self.connections.len());
        &self.connections[turn]
    }
}

async fn prepared(url: &str) -> Prepared {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("the database cannot be reached");
    spawn_local(async move { connection.await.expect("the database connection was lost") });
    let stamps = "select t.id::text, t.version, w.version, p.authz_epoch, t.metadata_location";
    let load = client
        .prepare(&format!("{stamps}, d.content, d.crc, d.length {TABLE}"))
        .await;
    let exists = client.prepare(&format!("{stamps} {TABLE}")).await;
    let state = "select t.id::text, t.version, t.location, t.metadata_location, p.id::text";
    let base = client
        .prepare(&format!("{state}, d.content, d.crc, d.length {TABLE}"))
        .await;
    let place = client.prepare(PLACE).await;
    let types = [Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT];
    let swap = format!("{SWAP}{}", RECORDED.replace("{action}", "updateTable"));
    let swap = client.prepare_typed(&swap, &types).await;
    let add = format!("{ADD}{}", RECORDED.replace("{action}", "createTable"));
    let more = [
        Type::TEXT,
        Type::BYTEA,
        Type::INT8,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
    ];
    let add = client
        .prepare_typed(&add, &[&types[..], &more[..]].concat())
        .await;
    Prepared {
        client,
        load: load.expect("the database is not this version's"),
        exists: exists.expect("the database is not this version's"),
        base: base.expect("the database is not this version's"),
        place: place.expect("the database is not this version's"),
        swap: swap.expect("the database is not this version's"),
        add: add.expect("the database is not this version's"),
    }
}

fn document(row: &Row, first: usize) -> Document {
    Document {
        content: row.get::<_, &[u8]>(first).to_vec(),
        crc: row.get::<_, i64>(first + 1) as u32,
        length: row.get::<_, i64>(first + 2) as u32,
    }
}

/// The details of the audit entry and the event, as JSON.
fn details(
    change: &Change<'_>,
    namespace: &str,
    name: &str,
    warehouse: &str,
    version: i64,
) -> String {
    serde_json::json!({
        "name": name,
        "namespace": [namespace],
        "warehouse-id": warehouse,
        "metadata-location": change.file,
        "version": version,
    })
    .to_string()
}

async fn one(
    client: &Client,
    statement: &Statement,
    warehouse: &str,
    namespace: &str,
    table: &str,
) -> Option<Row> {
    client
        .query_opt(statement, &[&warehouse, &namespace, &table])
        .await
        .expect("the look-up failed")
}
