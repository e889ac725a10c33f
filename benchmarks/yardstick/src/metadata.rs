//! Table metadata as far as a commit or a creation touches it; all other members are copied as they are.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::{to_raw_value, RawValue};

const LOG_ENTRIES: usize = 100;

type Members<'a> = BTreeMap<String, &'a RawValue>;
type Properties = BTreeMap<String, String>;

#[derive(Deserialize)]
pub struct Commit {
    requirements: Vec<Requirement>,
    updates: Vec<Update>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Requirement {
    #[serde(rename = "assert-table-uuid")]
    Uuid { uuid: String },
}

#[derive(Deserialize)]
#[serde(tag = "action")]
enum Update {
    #[serde(rename = "set-properties")]
    SetProperties { updates: Properties },
}

#[derive(Deserialize)]
pub struct Creation<'a> {
    pub name: String,
    #[serde(borrow)]
    schema: &'a RawValue,
}

#[derive(Deserialize)]
struct Schema<'a> {
    #[serde(borrow)]
    fields: Vec<&'a RawValue>,
}

#[derive(Debug)]
pub enum Refusal {
    Malformed,
    RequirementFailed,
}

impl From<serde_json::Error> for Refusal {
    fn from(_: serde_json::Error) -> Self {
        Refusal::Malformed
    }
}

/// The metadata after `commit`; `file` is where it was before.
pub fn committed(before: &str, file: &str, commit: &Commit) -> Result<String, Refusal> {
    let mut members: Members = serde_json::from_str(before)?;
    let uuid: String = member(&members, "table-uuid")?;
    for requirement in &commit.requirements {
        let Requirement::Uuid { uuid: required } = requirement;
        if *required != uuid {
            return Err(Refusal::RequirementFailed);
        }
    }
    let mut properties: Properties = member(&members, "properties").unwrap_or_default();
    for update in &commit.updates {
        let Update::SetProperties { updates } = update;
        properties.extend(updates.clone());
    }
    let last: i64 = member(&members, "last-updated-ms")?;
    let entry = to_raw_value(&serde_json::json!({"timestamp-ms": last, "metadata-file": file}))?;
    let mut log: Vec<&RawValue> = member(&members, "metadata-log").unwrap_or_default();
    log.push(&entry);
    log.drain(..log.len().saturating_sub(LOG_ENTRIES));
    let (log, properties) = (to_raw_value(&log)?, to_raw_value(&properties)?);
    let now = to_raw_value(&now_ms().max(last))?;
    members.insert("metadata-log".into(), &log);
    members.insert("properties".into(), &properties);
    members.insert("last-updated-ms".into(), &now);
    Ok(serde_json::to_string(&members)?)
}

/// The first metadata of a table.
pub fn created(creation: &Creation, uuid: &str, location: &str) -> Result<String, Refusal> {
    let columns = serde_json::from_str::<Schema>(creation.schema.get())?
        .fields
        .len();
    let schema = creation.schema.get();
    Ok(format!(
        "{{\"format-version\":2,\"table-uuid\":\"{uuid}\",\"location\":\"{location}\",\"last-sequence-number\":0,\
         \"last-updated-ms\":{},\"last-column-id\":{columns},\"current-schema-id\":0,\"schemas\":[{schema}],\
         \"default-spec-id\":0,\"partition-specs\":[{{\"spec-id\":0,\"fields\":[]}}],\"last-partition-id\":999,\
         \"default-sort-order-id\":0,\"sort-orders\":[{{\"order-id\":0,\"fields\":[]}}],\"properties\":{{}},\
         \"current-snapshot-id\":null,\"refs\":{{}},\"snapshots\":[],\"statistics\":[],\"partition-statistics\":[],\
         \"snapshot-log\":[],\"metadata-log\":[]}}",
        now_ms()
    ))
}

fn member<'a, T: Deserialize<'a>>(members: &Members<'a>, name: &str) -> Result<T, Refusal> {
    let raw = members.get(name).ok_or(Refusal::Malformed)?;
    Ok(serde_json::from_str(raw.get())?)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("the clock is after 1970").as_millis() as i64
}
