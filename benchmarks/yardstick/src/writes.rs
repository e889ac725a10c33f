//! Commits and creations: the file first, then everything in one statement.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use hyper::StatusCode;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::document::Document;
use crate::files;
use crate::lookup::{Change, Database, NewTable};
use crate::metadata::{self, Commit, Creation, Refusal};

/// The tables that commits are under way to: they take turns, as the pointer of each can move for one at a time.
#[derive(Default)]
pub struct Turns(RefCell<HashMap<String, Rc<Mutex<()>>>>);

impl Turns {
    fn of(&self, table: &str) -> Rc<Mutex<()>> {
        self.0
            .borrow_mut()
            .entry(table.to_owned())
            .or_default()
            .clone()
    }
}

pub async fn commit(
    database: &Database,
    turns: &Turns,
    actor: &str,
    (warehouse, namespace, table): (&str, &str, &str),
    body: &[u8],
) -> Result<Document, StatusCode> {
    let commit: Commit = serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let turn = turns.of(&format!("{warehouse}/{namespace}/{table}"));
    let _held = turn.lock().await;
    loop {
        let base = database
            .base(warehouse, namespace, table)
            .await
            .ok_or(StatusCode::NOT_FOUND)?;
        let plain = base.document.plain();
        let before = &plain[Document::prefix(&base.file).len()..];
        let text = std::str::from_utf8(before).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        let after = metadata::committed(text, &base.file, &commit).map_err(status)?;
        let file = format!(
            "{}/metadata/{:05}-{}.metadata.json",
            base.location,
            base.version,
            Uuid::new_v4()
        );
        let document = written(&file, after).await?;
        let change = Change {
            id: &base.id,
            project: &base.project,
            actor,
            file: &file,
            document: &document,
        };
        if database
            .swap(&change, base.version, namespace, table, warehouse)
            .await
        {
            return Ok(document);
        }
    }
}

pub async fn create(
    database: &Database,
    root: &str,
    actor: &str,
    (warehouse, namespace): (&str, &str),
    body: &[u8],
) -> Result<Document, StatusCode> {
    let creation: Creation = serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let place = database
        .place(warehouse, namespace)
        .await
        .ok_or(StatusCode::NOT_FOUND)?;
    let id = Uuid::new_v4().to_string();
    let location = format!("{root}/{id}");
    let file = format!("{location}/metadata/00000-{}.metadata.json", Uuid::new_v4());
    let document = written(
        &file,
        metadata::created(&creation, &id, &location).map_err(status)?,
    )
    .await?;
    let change = Change {
        id: &id,
        project: &place.project,
        actor,
        file: &file,
        document: &document,
    };
    let table = NewTable {
        warehouse,
        place: &place,
        namespace,
        name: &creation.name,
        location: &location,
    };
    if database.add(&change, &table).await {
        return Ok(document);
    }
    Err(StatusCode::CONFLICT)
}

async fn written(file: &str, metadata: String) -> Result<Document, StatusCode> {
    let document = Document::packed(file, &metadata);
    files::write(file.to_owned(), Bytes::from(metadata))
        .await
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(document)
}

fn status(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::Malformed => StatusCode::BAD_REQUEST,
        Refusal::RequirementFailed => StatusCode::CONFLICT,
    }
}
