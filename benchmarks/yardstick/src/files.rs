//! Writes metadata files as the catalog does: whole or not at all, and safe from a crash once `write` returns.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// Write a new file and its folder to the disk, off the thread that serves. `location` is a `file://` URI.
pub async fn write(location: String, content: Bytes) -> io::Result<()> {
    spawn_blocking(move || {
        let path = PathBuf::from(location.strip_prefix("file://").expect("a local file"));
        let folder = path.parent().expect("a file is in a folder");
        make(folder)?;
        let temporary = folder.join(format!(".{}", Uuid::new_v4()));
        let mut file = File::create_new(&temporary)?;
        file.write_all(&content)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        File::open(folder)?.sync_all()
    })
    .await
    .expect("the writing thread does not panic")
}

fn make(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let above = folder.parent().expect("a folder is in a folder");
    make(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(above)?.sync_all()
}
