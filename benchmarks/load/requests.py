"""Builds requests as bytes, once: the generator sends them again and again."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.failures import BenchmarkError

GZIP = "gzip"
IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go: `base` is what stands before `/v1`, `prefix` the warehouse's path part with its slash."""

    host: str
    port: int
    base: str
    prefix: str
    token: str | None

    @classmethod
    def of(cls, uri: str, *, prefix: str, token: str | None) -> "Endpoint":
        """The endpoint of a catalog URI (without `/v1`), http only."""
        parts = urlsplit(uri)
        if parts.scheme != "http" or parts.hostname is None:
            raise BenchmarkError(f"{uri!r} cannot be measured: an address that starts with http:// is expected")
        return cls(parts.hostname, parts.port or 80, parts.path.rstrip("/"), prefix, token)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        encoding: str = GZIP,
        headers: tuple[str, ...] = (),
        in_warehouse: bool = True,
    ) -> bytes:
        """A whole HTTP/1.1 request for `path` below `/v1/{prefix}`, or below `/v1` if not `in_warehouse`."""
        prefix = self.prefix if in_warehouse else ""
        lines = [
            f"{method} {self.base}/v1/{prefix}{path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Accept-Encoding: {encoding}",
            "Accept: application/json",
            "User-Agent: lakewarden-benchmarks",
            *headers,
        ]
        if self.token is not None:
            lines.append(f"Authorization: Bearer {self.token}")
        if method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
