//! The benchmarks' native yardstick: one thread that verifies a token, looks a table up and sends what is stored.
//!
//! It reads the catalog's own tables and answers `GET` and `HEAD` of
//! `/v1/{warehouse id}/namespaces/{namespace}/tables/{table}`. It checks no rights, writes no log and counts nothing:
//! it is the floor that a complete server is compared with, not a server to use.

mod document;
mod lookup;
mod token;

use std::convert::Infallible;
use std::env;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
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

const SUFFIX: &[u8] = b",\"config\":{}}";

struct State {
    database: Database,
    verifier: Verifier,
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

async fn answer<B>(
    state: Rc<State>,
    request: Request<B>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match respond(&state, &request).await {
        Ok(response) => response,
        Err(status) => plain(status),
    })
}

async fn respond<B>(
    state: &State,
    request: &Request<B>,
) -> Result<Response<Full<Bytes>>, StatusCode> {
    let bearer = header(request, AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    state
        .verifier
        .verify(bearer.ok_or(StatusCode::UNAUTHORIZED)?)
        .map_err(|_| StatusCode::UNAUTHORIZED)?;
    let (warehouse, namespace, table) = parts(request.uri().path()).ok_or(StatusCode::NOT_FOUND)?;
    if request.method() == Method::HEAD {
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
    Ok(load_answer(
        &document,
        header(request, ACCEPT_ENCODING).is_some_and(|value| value.contains("gzip")),
    ))
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

/// Warehouse, namespace and table of a path; the benchmarks' names need no percent-decoding.
fn parts(path: &str) -> Option<(&str, &str, &str)> {
    let mut segments = path.strip_prefix("/v1/")?.split('/');
    let warehouse = segments.next()?;
    (segments.next()? == "namespaces").then_some(())?;
    let namespace = segments.next()?;
    (segments.next()? == "tables").then_some(())?;
    Some((warehouse, namespace, segments.next()?))
}
