//! The stored answer of a table and how it is completed: the form is that of `catalog/documents.py`.

use std::io::Read;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::bufread::DeflateDecoder;
use flate2::{Compress, Compression, FlushCompress};

const GZIP_HEADER: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff";
const BLOCK: usize = 0xffff;

/// `content` is a gzip header and a deflate stream flushed to a byte border; `crc` and `length` are of the plain text.
pub struct Document {
    pub content: Vec<u8>,
    pub crc: u32,
    pub length: u32,
}

impl Document {
    /// What comes before the metadata in a document.
    pub fn prefix(file: &str) -> String {
        format!("{{\"metadata-location\":\"{file}\",\"metadata\":")
    }

    pub fn packed(file: &str, metadata: &str) -> Self {
        let plain = [Self::prefix(file).as_bytes(), metadata.as_bytes()].concat();
        let mut content = Vec::with_capacity(plain.len() + 1024);
        content.extend_from_slice(GZIP_HEADER);
        Compress::new(Compression::fast(), false)
            .compress_vec(&plain, &mut content, FlushCompress::Sync)
            .expect("a buffer can be compressed");
        Self {
            content,
            crc: crc32fast::hash(&plain),
            length: plain.len() as u32,
        }
    }

    /// What was packed.
    pub fn plain(&self) -> Vec<u8> {
        let mut plain = vec![0; self.length as usize];
        DeflateDecoder::new(&self.content[GZIP_HEADER.len()..])
            .read_exact(&mut plain)
            .expect("the stored document is damaged");
        plain
    }

    /// A complete gzip member: what is stored, `suffix` in stored blocks, the trailer.
    pub fn spliced(&self, suffix: &[u8]) -> Bytes {
        let mut whole = BytesMut::with_capacity(self.content.len() + suffix.len() + 64);
        whole.put_slice(&self.content);
        let last = suffix.chunks(BLOCK).count() - 1;
        for (index, block) in suffix.chunks(BLOCK).enumerate() {
            let size = block.len() as u16;
            whole.put_u8(u8::from(index == last));
            whole.put_u16_le(size);
            whole.put_u16_le(!size);
            whole.put_slice(block);
        }
        let mut checksum = crc32fast::Hasher::new_with_initial(self.crc);
        checksum.update(suffix);
        whole.put_u32_le(checksum.finalize());
        whole.put_u32_le(self.length.wrapping_add(suffix.len() as u32));
        whole.freeze()
    }

    /// The plain text and `suffix`, for clients that do not accept gzip.
    pub fn inflated(&self, suffix: &[u8]) -> Bytes {
        let mut plain = self.plain();
        plain.extend_from_slice(suffix);
        Bytes::from(plain)
    }
}
