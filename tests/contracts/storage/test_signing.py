"""Signatures as two real stores judge them: what is signed works, what is changed afterwards or was refused does not.

The thief may read and write one table, `wh/t`, and tries to reach everything else in the bucket, and other buckets.
"""

import tarfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import md5, sha256
from io import BytesIO
from typing import Any
from urllib.parse import quote, urlencode
from zlib import crc32

import pytest
import requests

from lakewarden.errors import LakewardenError
from lakewarden.storage.request_signing import RequestSigner, SignedRequest, SignRequest
from lakewarden.storage.s3.credentials import AccessKey
from lakewarden.storage.s3.profile import S3Profile
from tests.servers.minio import minio
from tests.servers.s3_server import REGION, S3Server
from tests.servers.versitygw import versitygw

__all__ = ["minio", "versitygw"]

OWN = "wh/t"
FOREIGN = ("wh/t2/f", "wh/tt/f", "wh/x/f", "wh/f", "f", "wh/T/f")
NAMES = ("f", "a b", "a+b", "100%", "é", "x=1,2/(a)!*'$&;:@", "%2F", "ünï/日本", "~tilde-_.")


class Refused(Exception):
    """The signer did not sign."""


@dataclass(frozen=True)
class Engine:
    """Has no keys: all it sends to the store is signed for it, within the table `OWN`."""

    server: S3Server
    bucket: str
    signer: RequestSigner

    def url(self, key: str = "", query: str = "") -> str:
        return f"{self.server.endpoint}/{self.bucket}/{quote(key, safe='/-_.~')}{query}"

    def signed(
        self, method: str, uri: str, headers: Mapping[str, str] | None = None, body: str | None = None
    ) -> SignedRequest:
        sent = {name: [value] for name, value in (headers or {}).items()}
        try:
            reach = self.signer.read(SignRequest(REGION, method, uri, sent, body))
        except LakewardenError as error:
            raise Refused(error.message) from error
        if not reach.is_inside(f"s3://{self.bucket}/{OWN}"):
            raise Refused(f"beyond the table: {reach.locations}")
        return self.signer.sign(reach)

    def send(
        self, method: str, uri: str, headers: Mapping[str, str] | None = None, body: bytes | str | None = None
    ) -> requests.Response:
        """The body of a deletion of several objects is shown to the signer, no other is."""
        shown = body if isinstance(body, str) else None
        signed = self.signed(method, uri, headers, shown)
        return sent(method, signed.uri, {**(headers or {}), **signed.headers}, body)


def sent(method: str, uri: str, headers: Mapping[str, str], body: bytes | str | None = None) -> requests.Response:
    """As it is: `requests` would write some URLs differently."""
    content = body.encode() if isinstance(body, str) else body
    prepared = requests.Request(method, "http://x", headers=dict(headers), data=content).prepare()
    prepared.url = uri
    with requests.Session() as session:
        session.trust_env = False
        return session.send(prepared, timeout=20)


@pytest.fixture(params=["minio", "versitygw"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    server: S3Server = request.getfixturevalue(request.param)
    bucket = server.new_bucket()
    profile = S3Profile.model_validate(
        {
            "type": "s3",
            "bucket": bucket,
            "region": REGION,
            "endpoint": server.endpoint,
            "path-style-access": True,
            "sts-enabled": False,
            "flavor": "s3-compat",
        }
    )
    root = server.root
    key = AccessKey.model_validate({"access-key-id": root.access_key_id, "secret-access-key": root.secret_access_key})
    for foreign in FOREIGN:
        server.client().put_object(Bucket=bucket, Key=foreign, Body=b"secret")
    yield Engine(server, bucket, profile.signer(key))
    for foreign in FOREIGN:
        content = server.client().get_object(Bucket=bucket, Key=foreign)["Body"].read()
        assert content == b"secret", f"{foreign} was changed"


def deletion(*keys: str) -> str:
    return "<Delete>" + "".join(f"<Object><Key>{key}</Key></Object>" for key in keys) + "</Delete>"


@pytest.mark.parametrize("name", NAMES)
def test_files_of_any_name_are_written_read_and_deleted(engine: Engine, name: str) -> None:
    uri = engine.url(f"{OWN}/{name}")
    assert engine.send("PUT", uri, {"Content-Type": "text/plain"}, b"0123456789").status_code == 200
    assert engine.server.keys_in(engine.bucket, f"{OWN}/") == [f"{OWN}/{name}"]
    assert engine.send("GET", uri).content == b"0123456789"
    assert engine.send("GET", uri, {"Range": "bytes=2-4"}).content == b"234"
    assert engine.send("HEAD", uri).headers["content-length"] == "10"
    folder = f"{OWN}/{name}".rpartition("/")[0] + "/"
    listed = engine.send("GET", engine.url(query=f"?list-type=2&prefix={quote(folder, safe='')}&delimiter=%2F"))
    assert listed.status_code == 200
    assert listed.text.count("<Key>") == 1
    assert engine.send("DELETE", uri).status_code == 204
    assert engine.server.keys_in(engine.bucket, f"{OWN}/") == []


def test_a_body_may_be_signed_with_its_hash(engine: Engine) -> None:
    uri, headers = engine.url(f"{OWN}/f"), {"x-amz-content-sha256": sha256(b"one").hexdigest()}
    assert engine.send("PUT", uri, headers, b"one").status_code == 200
    assert engine.send("PUT", uri, headers, b"two").status_code in {400, 403}
    assert engine.send("GET", uri).content == b"one"


def test_a_file_is_not_replaced_where_the_engine_says_so(engine: Engine) -> None:
    uri = engine.url(f"{OWN}/f")
    assert engine.send("PUT", uri, {"If-None-Match": "*"}, b"one").status_code == 200
    assert engine.send("PUT", uri, {"If-None-Match": "*"}, b"two").status_code == 412


def test_several_objects_are_deleted_at_once(engine: Engine) -> None:
    keys = [f"{OWN}/{number} é+" for number in range(3)]
    for key in keys:
        assert engine.send("PUT", engine.url(key), body=b"").status_code == 200
    body = deletion(*keys[:2])
    headers = {
        "Content-MD5": b64encode(md5(body.encode(), usedforsecurity=False).digest()).decode()
    }  # the store asks for it
    answer = engine.send("POST", engine.url(query="?delete"), headers, body)
    assert answer.status_code == 200, answer.text
    assert engine.server.keys_in(engine.bucket, f"{OWN}/") == keys[2:]


def test_a_large_file_is_written_in_parts_and_copied(engine: Engine) -> None:
    uri = engine.url(f"{OWN}/large")
    begun = engine.send("POST", f"{uri}?uploads")
    upload = begun.text.partition("<UploadId>")[2].partition("</UploadId>")[0]
    part = b"x" * (5 * 1024 * 1024)
    tags = [
        engine.send("PUT", f"{uri}?partNumber={number}&uploadId={quote(upload, safe='')}", body=part).headers["etag"]
        for number in (1, 2)
    ]
    parts = "".join(f"<Part><PartNumber>{at}</PartNumber><ETag>{tag}</ETag></Part>" for at, tag in enumerate(tags, 1))
    whole = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    done = engine.send("POST", f"{uri}?uploadId={quote(upload, safe='')}", body=whole)
    assert done.status_code == 200, done.text
    assert engine.send("HEAD", uri).headers["content-length"] == str(2 * len(part))
    copied = engine.send("PUT", engine.url(f"{OWN}/copy"), {"x-amz-copy-source": f"/{engine.bucket}/{OWN}/large"})
    assert copied.status_code == 200, copied.text
    assert engine.send("HEAD", engine.url(f"{OWN}/copy")).headers["content-length"] == str(2 * len(part))


EXTRACT = {"x-amz-meta-snowball-auto-extract": "true"}


def archive(names: Iterable[str]) -> bytes:
    """With files that would replace those of others where a store unpacks it."""
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w") as made:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(b"thief!")
            made.addfile(entry, BytesIO(b"thief!"))
    return content.getvalue()


def copy_sources(bucket: str) -> list[str]:
    """Spellings of files of others, and of more than a file."""
    foreign = FOREIGN[0]
    return [
        f"{bucket}/{foreign}",
        f"//{bucket}/{foreign}",
        f"other/../{bucket}/{foreign}",
        f"{bucket}/{OWN}/../t2/f",
        f"{bucket}/{OWN}/%2e%2e/t2/f",
        f"{bucket}%2F{quote(foreign, safe='')}",
        f"{bucket}/{OWN}%2F..%2Ft2%2Ff",
        f"{bucket}/{foreign}#/{OWN}/f",
        f"{bucket}/{OWN}/f?versionId=null",
        f"http://{bucket}/{foreign}",
        f"arn:aws:s3:::{bucket}/{foreign}",
        f"{bucket}/{OWN}/f, {bucket}/{foreign}",
        f" {bucket}/{foreign}",
        "",
    ]


def forged_uploads(bucket: str) -> list[str]:
    """Ids that MinIO and versitygw would make a path of, which leads to the folder of another table."""
    paths = [f"{'../' * number}{place}" for number in (3, 4) for place in ("wh/t2", f"{bucket}/wh/t2/f")]
    return [*paths, *(urlsafe_b64encode(f"x.{path}".encode()).decode().rstrip("=") for path in paths), "..", "."]


SMUGGLED = (
    ("Range", "bytes=0-1\r\nx-amz-copy-source: x"),
    ("x-amz-meta-a", "b\nHost: other"),
    ("x-amz-meta-a\r\nx-amz-copy-source", "b"),
    ("x-amz-meta-a:b", "c"),
    ("x-amz-meta a", "c"),
    ("Host", "other.example"),
    ("Host", ""),
    ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
    ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"),
    ("x-amz-content-sha256", "UNSIGNED-PAYLOAD, x"),
    ("x-amz-tagging", "a=b"),
    ("x-amz-bypass-governance-retention", "true"),
    ("x-amz-object-lock-mode", "COMPLIANCE"),
    ("x-amz-website-redirect-location", "/wh/t2/f"),
    ("x-amz-grant-read", "uri=all"),
    ("x-amz-security-token", "of-another"),
)
NEVER_WRITTEN = (("x-amz-acl", "public-read-write"), ("x-amz-meta-minio-source", "x"))
PRESIGNED = (
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=604800",
    "x-amz-expires=604800",
    "X-Amz-Signature=00",
    "X%2DAmz%2DExpires=604800",
    "AWSAccessKeyId=x&Signature=x&Expires=2000000000",
    "versionId=null",
    "response-content-type=text/html",
    "attributes",
)
"""A signature for a week, in the form that needs no header, and what reads more than the file."""


def attempts(engine: Engine) -> list[tuple[str, str, dict[str, str], str | None]]:
    """Everything that the thief asks to be signed."""
    found: list[tuple[str, str, dict[str, str], str | None]] = []
    base = f"{engine.server.endpoint}/{engine.bucket}"
    spellings = [quote(key) for key in FOREIGN]
    spellings += [f"{OWN}/../x/f", f"{OWN}/%2e%2e/x/f", f"{OWN}/..%2Fx/f", f"{OWN}%2F..%2Fx%2Ff", f"{OWN}//../x/f"]
    spellings += [
        f"{OWN}/.%2e/x/f",
        f"{OWN}/..%5Cx%5Cf",
        f"{OWN}/%252e%252e/../x/f",
        "wh/t%32/f",
        "wh%2Ft2%2Ff",
        "/wh/x/f",
    ]
    for path in spellings:
        found += [(method, f"{base}/{path}", {}, None) for method in ("GET", "HEAD", "PUT", "DELETE")]
        found.append(("POST", f"{base}/{path}?uploads", {}, None))
        found.append(("PUT", f"{base}/{path}?partNumber=1&uploadId=x", {}, None))
    found += [
        ("GET", f"{base}?list-type=2{more}", {}, None) for more in ("", "&prefix=", "&prefix=wh/", "&prefix=wh/t")
    ]
    found += [("GET", f"{base}?list-type=2&prefix=wh/t/&prefix=", {}, None), ("GET", base, {}, None)]
    found += [("GET", f"{base}?{what}", {}, None) for what in ("acl", "policy", "versions", "uploads", "location")]
    found += [("PUT", f"{base}?policy", {}, None), ("DELETE", base, {}, None), ("PUT", base, {}, None)]
    found += [("POST", f"{base}?delete", {}, deletion(f"{OWN}/f", foreign)) for foreign in FOREIGN]
    found += [("POST", f"{base}?delete", {}, None)]
    for foreign in FOREIGN:
        source = {"x-amz-copy-source": f"/{engine.bucket}/{foreign}"}
        found += [("PUT", f"{base}/{OWN}/f", source, None)]
        found += [("PUT", f"{base}/{OWN}/f?partNumber=1&uploadId=x", source, None)]
    found += [("PUT", f"{base}/{OWN}/f", {"x-amz-copy-source": source}, None) for source in copy_sources(engine.bucket)]
    for upload in forged_uploads(engine.bucket):
        own = f"{base}/{OWN}/f?uploadId={quote(upload, safe='')}"
        found += [(method, own, {}, None) for method in ("GET", "POST", "DELETE")] + [
            ("PUT", f"{own}&partNumber=1", {}, None)
        ]
    for name, value in SMUGGLED:
        found += [("GET", f"{base}/{OWN}/f", {name: value}, None), ("PUT", f"{base}/{OWN}/f", {name: value}, None)]
    found += [("PUT", f"{base}/{OWN}/f", {name: value}, None) for name, value in NEVER_WRITTEN]
    found += [("GET", f"{base}/{OWN}/f?{query}", {}, None) for query in PRESIGNED]
    found += [("PUT", f"{base}/{OWN}/f", {"x-amz-acl": "public-read"}, None), ("PUT", f"{base}/{OWN}/f", EXTRACT, None)]
    found += [("PUT", f"{base}/{OWN}/f?acl", {}, None), ("PUT", f"{base}/{OWN}/f?tagging", {}, None)]
    found += [("GET", f"{engine.server.endpoint}/other/{OWN}/f", {}, None)]
    found += [
        ("GET", f"{engine.server.endpoint}/{engine.bucket}x/{OWN}/f", {}, None),
        ("GET", engine.server.endpoint, {}, None),
    ]
    found += [("GET", f"http://{engine.bucket}.{engine.server.address}/{OWN}/f", {}, None)]
    return found


def test_nothing_else_is_signed(engine: Engine) -> None:
    tried = attempts(engine)
    assert len(tried) > 230
    signed = []
    for method, uri, headers, body in tried:
        try:
            signed.append((method, engine.signed(method, uri, headers, body).uri))
        except Refused:
            continue
    assert signed == []


def presigned(headers: Mapping[str, str]) -> str:
    """The signature as a query, as presigned URLs have it."""
    credential, names, signature = (
        part.partition("=")[2] for part in headers["authorization"].partition(" ")[2].split(", ")
    )
    members = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": credential,
        "X-Amz-Date": headers["x-amz-date"],
        "X-Amz-Expires": "604800",
        "X-Amz-SignedHeaders": names,
        "X-Amz-Signature": signature,
    }
    return urlencode(members)


def test_headers_that_name_another_request_have_no_effect(engine: Engine) -> None:
    """No store, and nothing in front of it, may take them for the request that was signed."""
    own = engine.url(f"{OWN}/f")
    assert engine.send("PUT", own, body=b"own").status_code == 200
    misleading = {
        "X-Forwarded-Host": "other.example",
        "X-Original-URL": f"/{engine.bucket}/{FOREIGN[0]}",
        "X-Rewrite-URL": f"/{engine.bucket}/{FOREIGN[0]}",
        "X-HTTP-Method-Override": "DELETE",
        "X-Minio-Force-Delete": "true",
        "X-Minio-Extract": "true",
    }
    assert engine.send("GET", own, misleading).content == b"own"
    assert engine.send("PUT", own, misleading, b"new").status_code == 200
    assert engine.send("GET", own).content == b"new"


def test_a_body_in_chunks_with_a_checksum_is_written(engine: Engine) -> None:
    """As newer clients of AWS send it: the chunks have no signatures."""
    own = engine.url(f"{OWN}/f")
    headers = {
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": "5",
        "x-amz-trailer": "x-amz-checksum-crc32",
        "Content-Encoding": "aws-chunked",
    }
    checksum = b64encode(crc32(b"hello").to_bytes(4)).decode()
    body = f"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n".encode()
    written = engine.send("PUT", own, headers, body)
    assert written.status_code == 200, written.text
    assert engine.send("GET", own).content == b"hello"
    signed = engine.signed("PUT", own, headers)
    assert sent("PUT", engine.url(FOREIGN[0]), {**headers, **signed.headers}, body).status_code == 403
    longer = {**headers, **signed.headers, "x-amz-decoded-content-length": "6"}
    assert sent("PUT", own, longer, body).status_code >= 400


def test_a_signature_is_for_one_request_only(engine: Engine) -> None:
    """What the store refuses when the thief changes a request after it was signed."""
    own = engine.url(f"{OWN}/f")
    assert engine.send("PUT", own, body=b"own").status_code == 200
    get, put = engine.signed("GET", own), engine.signed("PUT", own, {"Content-Type": "a/b"})
    listed = engine.signed("GET", engine.url(query="?list-type=2&prefix=wh%2Ft%2F"))
    many = engine.signed("POST", engine.url(query="?delete"), {}, deletion(f"{OWN}/f"))
    stolen = {"x-amz-copy-source": f"/{engine.bucket}/{FOREIGN[0]}"}
    etag = engine.server.client().head_object(Bucket=engine.bucket, Key=FOREIGN[0])["ETag"]
    begun = engine.send("POST", f"{own}?uploads").text.partition("<UploadId>")[2].partition("</UploadId>")[0]
    part = engine.signed("PUT", f"{own}?partNumber=1&uploadId={quote(begun, safe='')}")
    changed: dict[str, tuple[str, str, Mapping[str, str], Any]] = {
        f"path {foreign}": ("GET", engine.url(foreign), get.headers, None) for foreign in FOREIGN
    }
    changed |= {
        "method": ("DELETE", own, get.headers, None),
        "method to a write": ("PUT", own, get.headers, b"thief"),
        "path of a write": ("PUT", engine.url(FOREIGN[0]), put.headers, b"thief"),
        "header that is signed": ("PUT", own, {**put.headers, "Content-Type": "c/d"}, b"thief"),
        "query of a file": ("GET", f"{own}?acl", get.headers, None),
        "query of a list": ("GET", engine.url(query="?list-type=2&prefix=wh%2F"), listed.headers, None),
        "list without a prefix": ("GET", engine.url(query="?list-type=2"), listed.headers, None),
        "body of a deletion": ("POST", many.uri, many.headers, deletion(FOREIGN[0])),
        "an archive": ("PUT", own, {**put.headers, "Content-Type": "a/b", **EXTRACT}, archive(FOREIGN)),
        "an archive, in two words": (
            "PUT",
            own,
            {**put.headers, "Content-Type": "a/b", "X-Amz-Meta-Snowball-Auto-Extract": "true"},
            archive(FOREIGN),
        ),
        "a copy into a part": ("PUT", part.uri, {**part.headers, **stolen}, None),
        "a copy that matches": (
            "PUT",
            own,
            {**put.headers, "Content-Type": "a/b", **stolen, "x-amz-copy-source-if-match": etag},
            None,
        ),
        "a copy": (
            "PUT",
            own,
            {**put.headers, "Content-Type": "a/b", "x-amz-copy-source": f"/{engine.bucket}/{FOREIGN[0]}"},
            None,
        ),
        "the form without headers": ("GET", f"{own}?{presigned(get.headers)}", {}, None),
        "another host": ("GET", own, {**get.headers, "Host": f"{engine.bucket}.{engine.server.address}"}, None),
        "the parts of another upload": (
            "PUT",
            f"{own}?partNumber=1&uploadId={quote(forged_uploads(engine.bucket)[0], safe='')}",
            part.headers,
            b"thief",
        ),
        "time": ("GET", own, {**get.headers, "x-amz-date": "20200101T000000Z"}, None),
        "payload": ("GET", own, {**get.headers, "x-amz-content-sha256": sha256(b"").hexdigest()}, None),
    }
    accepted = [name for name, request in changed.items() if sent(*request).status_code < 400]
    assert accepted == []
    assert engine.server.client().get_object(Bucket=engine.bucket, Key=f"{OWN}/f")["Body"].read() == b"own"
