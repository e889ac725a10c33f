//! The benchmarks' native yardstick: one thread that verifies a token, looks a table up and sends what is stored.
//!
//! It uses the catalog's own tables and files and answers `GET`, `HEAD` and `POST` (a commit of properties) of
//! `/v1/{warehouse id}/namespaces/{namespace}/tables/{table}`, and `POST` of `…/tables` (a creation). It checks no
//! rights, writes no log and counts nothing: it is the floor that a complete server is compared with, not a server
//! to use.

mod document;
mod files;
mod lookup;
mod metadata;
mod token;
mod writes;

use std::convert::Infallible;
use std::env;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{spawn_local, LocalSet};

use document::Document;
use lookup::Database;
use token::Verifier;
use writes::Turns;

const SUFFIX: &[u8] = b",\"config\":{}}";

struct State {
    database: Database,
    verifier: Verifier,
    turns: Turns,
    root: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    LocalSet::new().run_until(serve()).await;
}

/// Listens on a free port of 127.0.0.1 and says it on standard output.
async fn serve() {
    let state = Rc::new(State {
        database: Database::connect(&variable("YARDSTICK_DATABASE_URL")).await,
        verifier: Verifier::new(
            &variable("YARDSTICK_JWKS"),
            &variable("YARDSTICK_ISSUER"),
            &variable("YARDSTICK_AUDIENCE"),
        ),
        turns: Turns::default(),
        root: variable("YARDSTICK_LOCATION"),
    });
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("no free port");
    println!(
        "{}",
        listener
            .local_addr()
            .expect("the listener has an address")
            .port()
    );
    loop {
        let (stream, _) = listener.accept().await.expect("cannot accept");
        stream.set_nodelay(true).expect("cannot set TCP_NODELAY");
        let state = state.clone();
        spawn_local(async move {
            let service = service_fn(move |request| answer(state.clone(), request));
            // a client that goes away is no matter of ours
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn variable(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: the benchmarks start this program"))
}

async fn answer(
    state: Rc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match respond(&state, request).await {
        Ok(response) => response,
        Err(status) => plain(status),
    })
}

async fn respond(
    state: &State,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, StatusCode> {
    let bearer = header(&request, AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let subject = state
        .verifier
        .verify(bearer.ok_or(StatusCode::UNAUTHORIZED)?)
        .map_err(|_| StatusCode::UNAUTHORIZED)?;
    let gzip = header(&request, ACCEPT_ENCODING).is_some_and(|value| value.contains("gzip"));
    let (head, body) = request.into_parts();
    let (warehouse, namespace, table) = parts(head.uri.path()).ok_or(StatusCode::NOT_FOUND)?;
    if head.method == Method::POST {
        let body = body
            .collect()
            .await
            .map_err(|_| StatusCode::BAD_REQUEST)?
            .to_bytes();
        let actor = format!("oidc~{subject}");
        let document = match table {
            Some(table) => {
                let path = (warehouse, namespace, table);
                writes::commit(&state.database, &state.turns, &actor, path, &body).await?
            }
            None => {
                let path = (warehouse, namespace);
                writes::create(&state.database, &state.root, &actor, path, &body).await?
            }
        };
        return Ok(load_answer(&document, gzip));
    }
    let table = table.ok_or(StatusCode::NOT_FOUND)?;
    if head.method == Method::HEAD {
        let found = state.database.exists(warehouse, namespace, table).await;
        return if found {
            Ok(plain(StatusCode::NO_CONTENT))
        } else {
            Err(StatusCode::NOT_FOUND)
        };
    }
    let document = state
        .database
        .load(warehouse, namespace, table)
        .await
        .ok_or(StatusCode::NOT_FOUND)?;
    Ok(load_answer(&document, gzip))
}

fn load_answer(document: &Document, gzip: bool) -> Response<Full<Bytes>> {
    let response = Response::builder().header(CONTENT_TYPE, "application/json");
    let built = if gzip {
        response
            .header(CONTENT_ENCODING, "gzip")
            .body(Full::new(document.spliced(SUFFIX)))
    } else {
        response.body(Full::new(document.inflated(SUFFIX)))
    };
    built.expect("the headers are valid")
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .body(Full::default())
        .expect("no header can be wrong")
}

fn header<B>(request: &Request<B>, name: hyper::header::HeaderName) -> Option<&str> {
    request
        .headers()
        .get(name)
        .and_then(|value| value.to_str().ok())
}

/// Warehouse, namespace and perhaps table of a path; the benchmarks' names need no percent-decoding.
fn parts(path: &str) -> Option<(&str, &str, Option<&str>)> {
    let mut segments = path.strip_prefix("/v1/")?.split('/');
    let warehouse = segments.next()?;
    (segments.next()? == "namespaces").then_some(())?;
    let namespace = segments.next()?;
    (segments.next()? == "tables").then_some(())?;
    Some((warehouse, namespace, segments.next()))
}
