//! The look-up of a table by name: prepared once for each of a few connections, which take turns.

use std::cell::Cell;

use tokio::task::spawn_local;
use tokio_postgres::{Client, NoTls, Row, Statement};

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

struct Prepared {
    client: Client,
    load: Statement,
    exists: Statement,
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
        Some(Document {
            content: row.get::<_, &[u8]>(5).to_vec(),
            crc: row.get::<_, i64>(6) as u32,
            length: row.get::<_, i64>(7) as u32,
        })
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
    Prepared {
        client,
        load: load.expect("the database is not this version's"),
        exists: exists.expect("the database is not this version's"),
    }
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
