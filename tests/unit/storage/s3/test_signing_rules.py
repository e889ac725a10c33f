"""What a request to S3 reaches, and which requests are refused, told by their URLs, bodies and headers."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from lakewarden.errors import BadRequest, Forbidden, LakewardenError, MethodNotAllowed
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.request_signing import Reach, SignRequest
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.signing_headers import Bounds
from lakewarden.storage.s3.signing_hosts import Hosts
from lakewarden.storage.s3.signing_rules import Signable, SigningRules

READ, WRITE = AccessLevel.READ, AccessLevel.WRITE
AT = "https://s3.example.org:9000/lake"


def rules(**fields: Any) -> SigningRules:
    profile = {"type": "s3", "bucket": "lake", "region": "eu-central-1", "sts-enabled": False, **fields}
    if fields.get("endpoint", "") is None:
        del profile["endpoint"]
    elif "endpoint" not in fields:
        profile["endpoint"] = "https://s3.example.org:9000"
    return SigningRules("lake", Hosts(S3Profile.model_validate(profile)), is_aws=profile.get("flavor") != "s3-compat")


RULES = rules()


def read(
    method: str,
    uri: str,
    headers: Mapping[str, str | list[str]] | None = None,
    *,
    body: str | None = None,
    by: SigningRules = RULES,
) -> Signable:
    sent = {name: [value] if isinstance(value, str) else value for name, value in (headers or {}).items()}
    return by.read(SignRequest("eu-central-1", method, uri, sent, body))


def is_inside(found: Signable) -> bool:
    return Reach(found.level, [f"s3://lake/{key}" for key in found.keys], found).is_inside("s3://lake/wh/t")


def deletion(*keys: str) -> str:
    return "<Delete>" + "".join(f"<Object><Key>{key}</Key></Object>" for key in keys) + "</Delete>"


@pytest.mark.parametrize(
    ("method", "path", "level", "key"),
    [
        ("GET", "wh/t/f", READ, "wh/t/f"),
        ("HEAD", "wh/t/f", READ, "wh/t/f"),
        ("GET", "wh/t/f?partNumber=1&x-id=GetObject", READ, "wh/t/f"),
        ("PUT", "wh/t/f", WRITE, "wh/t/f"),
        ("DELETE", "wh/t/f", WRITE, "wh/t/f"),
        ("POST", "wh/t/f?uploads", WRITE, "wh/t/f"),
        ("PUT", "wh/t/f?partNumber=1&uploadId=x%2Fy", WRITE, "wh/t/f"),
        ("POST", "wh/t/f?uploadId=x", WRITE, "wh/t/f"),
        ("DELETE", "wh/t/f?uploadId=x", WRITE, "wh/t/f"),
        ("GET", "wh/t/f?uploadId=x", WRITE, "wh/t/f"),
        ("GET", "wh/t/a%20b/c%2Bd/%C3%A9/x%3D1/100%25/%252F", READ, "wh/t/a b/c+d/é/x=1/100%/%2F"),
        ("GET", "wh/t/x=1,2/(a)!*'$&;:@", READ, "wh/t/x=1,2/(a)!*'$&;:@"),
        ("PUT", "wh/t/folder/", WRITE, "wh/t/folder/"),
    ],
)
def test_requests_for_one_key(method: str, path: str, level: AccessLevel, key: str) -> None:
    found = read(method, f"{AT}/{path}")
    assert (found.level, found.keys) == (level, [key])
    assert is_inside(found)


def test_the_answered_uri_is_the_one_that_was_signed() -> None:
    found = read("GET", f"{AT}/wh/t/x=1,2/%c3%a9?x-id=GetObject")
    assert found.uri == f"{AT}/wh/t/x%3D1%2C2/%C3%A9?x-id=GetObject"
    assert (found.canonical.path, found.canonical.host) == ("/lake/wh/t/x%3D1%2C2/%C3%A9", "s3.example.org:9000")


@pytest.mark.parametrize("key", ["wh/t", "wh/t2/f", "wh/tt", "wh/x/f", "w", "wh", "wh/T/f", "wh/t%20/f"])
def test_look_alikes_are_not_inside(key: str) -> None:
    assert not is_inside(read("GET", f"{AT}/{key}"))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("wh/t/../x/f", "'..'"),
        ("wh/t/%2e%2e/x/f", "'..'"),
        ("wh/t/./f", "'.'"),
        ("wh/t//f", "empty folder"),
        ("/wh/t/f", "empty folder"),
        ("wh/t/f//", "empty folder"),
        ("wh%2Ft/f", "%2F"),
        ("wh/t/..%2fx/f", "%2F"),
        ("wh/t/a+b", "'+'"),
        ("wh/t/a%5Cb", "backslash"),
        ("wh/t/a\\b", "not a valid uri"),
        ("wh/t/a b", "not a valid uri"),
        ("wh/t/é", "not a valid uri"),
        ("wh/t/f#x", "not a valid uri"),
        ("wh/t/%", "two hexadecimal digits"),
        ("wh/t/%zz", "two hexadecimal digits"),
        ("wh/t/%ff", "UTF-8"),
        ("wh/t/%00", "control character"),
        ("wh/t/a%0d%0ab", "control character"),
        ("wh/t/" + "a" * 1025, "1024 bytes"),
        ("wh/t/" + "a" * 9000, "8192"),
        ("wh/t/f?X-Amz-Signature=x", "signed already"),
        ("wh/t/f?x-amz-security-token=x", "signed already"),
        ("wh/t/f?partNumber=1&partNumber=2", "twice"),
        ("wh/t/f?partNumber=1&part%4Eumber=2", "twice"),
        ("wh/t/f?uploadId=a+b", "'+'"),
    ],
)
def test_what_stores_read_in_several_ways_is_refused(path: str, says: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(says)):
        read("GET", f"{AT}/{path}")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "?acl"),
        ("GET", "?policy"),
        ("GET", "?versions&prefix=wh/t/"),
        ("GET", "?location"),
        ("GET", "?uploads"),
        ("GET", ""),
        ("GET", "/"),
        ("GET", "?prefix=wh/t/"),
        ("GET", "?list-type=1&prefix=wh/t/"),
        ("GET", "?list-type=2&prefix=wh/t/&versions"),
        ("HEAD", ""),
        ("HEAD", "?list-type=2&prefix=wh/t/"),
        ("PUT", ""),
        ("PUT", "?policy"),
        ("DELETE", ""),
        ("POST", ""),
        ("POST", "?delete&x"),
        ("GET", "/wh/t/f?acl"),
        ("PUT", "/wh/t/f?acl"),
        ("PUT", "/wh/t/f?tagging"),
        ("GET", "/wh/t/f?versionId=1"),
        ("DELETE", "/wh/t/f?versionId=1"),
        ("POST", "/wh/t/f?restore"),
        ("POST", "/wh/t/f?select&select-type=2"),
        ("POST", "/wh/t/f?delete"),
        ("POST", "/wh/t/f"),
        ("PUT", "/wh/t/f?uploadId=x"),
        ("PUT", "/wh/t/f?retention"),
        ("PUT", "/wh/t/f?renameObject"),
        ("GET", "/wh/t/f?response-content-type=text/html"),
    ],
)
def test_other_operations_are_not_signed(method: str, path: str) -> None:
    with pytest.raises(BadRequest):
        read(method, f"{AT}{path}")


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "get", "CONNECT", ""])
def test_other_methods_are_not_signed(method: str) -> None:
    with pytest.raises(MethodNotAllowed):
        read(method, f"{AT}/wh/t/f")


@pytest.mark.parametrize(
    "uri",
    [
        "https://s3.example.org/lake/wh/t/f",
        "https://s3.example.org:9001/lake/wh/t/f",
        "http://s3.example.org:9000/lake/wh/t/f",
        "https://evil.org:9000/lake/wh/t/f",
        "https://s3.example.org.evil.org:9000/lake/wh/t/f",
        "https://other.s3.example.org:9000/wh/t/f",
        "https://s3.example.org:9000/other/wh/t/f",
        "https://s3.example.org:9000/lakehouse/wh/t/f",
        "https://s3.example.org:9000/%6cake/wh/t/f",
        "https://s3.example.org:9000/",
        "https://s3.example.org:9000",
    ],
)
def test_nothing_is_signed_for_another_host_port_scheme_or_bucket(uri: str) -> None:
    with pytest.raises(Forbidden):
        read("GET", uri)


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://s3.example.org:9000/lake/wh/t/f",
        "https://a@s3.example.org:9000/lake/wh/t/f",
        "https:///lake",
        "/lake",
        "",
    ],
)
def test_malformed_uris_are_refused(uri: str) -> None:
    with pytest.raises(BadRequest, match="not a valid uri"):
        read("GET", uri)


@pytest.mark.parametrize("host", ["evil.org", "s3.example.org", "s3.example.org:9001"])
def test_the_host_of_the_headers_is_the_one_of_the_uri(host: str) -> None:
    with pytest.raises(BadRequest, match="header host"):
        read("GET", f"{AT}/wh/t/f", {"Host": host})
    assert read("GET", f"{AT}/wh/t/f", {"Host": "S3.Example.org:9000"}).canonical.host == "s3.example.org:9000"


def test_the_bucket_is_named_by_the_host_where_the_profile_allows_it() -> None:
    uri = "https://lake.s3.example.org:9000/wh/t/f"
    assert read("GET", uri).keys == ["wh/t/f"]
    assert read("GET", uri, by=rules(**{"remote-signing-url-style": "virtual-host"})).keys == ["wh/t/f"]
    for fields in ({"path-style-access": True}, {"remote-signing-url-style": "path"}):
        with pytest.raises(Forbidden):
            read("GET", uri, by=rules(**fields))
    with pytest.raises(Forbidden):
        read("GET", f"{AT}/wh/t/f", by=rules(**{"remote-signing-url-style": "virtual-host"}))


def test_an_address_has_no_names_below_it() -> None:
    with pytest.raises(Forbidden):
        read("GET", "http://lake.127.0.0.1:9000/wh/t/f", by=rules(endpoint="http://127.0.0.1:9000"))


@pytest.mark.parametrize(
    "host",
    [
        "lake.s3.eu-central-1.amazonaws.com",
        "lake.s3.amazonaws.com",
        "lake.s3.dualstack.eu-central-1.amazonaws.com",
        "LAKE.s3.eu-central-1.amazonaws.com",
        "lake.s3.eu-central-1.amazonaws.com:443",
    ],
)
def test_without_an_endpoint_the_store_is_that_of_the_region_in_aws(host: str) -> None:
    aws = rules(endpoint=None)
    assert read("GET", f"https://{host}/wh/t/f", by=aws).keys == ["wh/t/f"]
    with pytest.raises(Forbidden):
        read("GET", "https://lake.s3.us-east-1.amazonaws.com/wh/t/f", by=aws)
    with pytest.raises(Forbidden):
        read("GET", f"http://{host}/wh/t/f", by=aws)


def test_engines_reach_the_store_by_the_endpoint_for_clients_or_by_that_of_the_server() -> None:
    both = rules(**{"client-endpoint": "https://outside.example.org/gate/"})
    assert read("GET", "https://outside.example.org/gate/lake/wh/t/f", by=both).keys == ["wh/t/f"]
    assert read("GET", "https://lake.outside.example.org/gate/wh/t/f", by=both).keys == ["wh/t/f"]
    assert read("GET", f"{AT}/wh/t/f", by=both).keys == ["wh/t/f"]
    for path in ("lake/wh/t/f", "gate2/lake/wh/t/f", "gate/lakes/wh/t/f"):
        with pytest.raises(Forbidden):
            read("GET", f"https://outside.example.org/{path}", by=both)
    with pytest.raises(Forbidden):
        read("GET", "https://lake.outside.example.org/gates/wh/t/f", by=both)


def test_lists_need_a_folder_as_their_prefix() -> None:
    found = read("GET", f"{AT}?list-type=2&prefix=wh%2Ft%2Fa%20b%2F&delimiter=%2F&max-keys=9&continuation-token=x%3D")
    assert (found.level, found.keys) == (READ, ["wh/t/a b/"])
    assert is_inside(read("GET", f"{AT}/?prefix=wh/t/&list-type=2"))
    assert not is_inside(read("GET", f"{AT}?list-type=2&prefix=wh/"))
    assert not is_inside(read("GET", f"{AT}?list-type=2&prefix=wh/t2/"))
    for prefix in ("", "wh/t", "wh/t/part", "/", "wh/t/../", "wh//t/"):
        with pytest.raises(BadRequest):
            read("GET", f"{AT}?list-type=2&prefix={prefix}")


def test_a_deletion_of_several_objects_names_all_its_keys() -> None:
    found = read("POST", f"{AT}?delete", body=deletion("wh/t/a", "wh/t/b &amp; c"))
    assert (found.level, found.keys) == (WRITE, ["wh/t/a", "wh/t/b & c"])
    assert found.canonical.query == "delete="
    assert len(found.canonical.payload) == 64
    assert not is_inside(read("POST", f"{AT}?delete", body=deletion("wh/t/a", "wh/x/b")))
    with pytest.raises(BadRequest, match="must hold its body"):
        read("POST", f"{AT}?delete")


def test_the_body_that_was_checked_is_the_body_that_is_signed() -> None:
    for claimed in ("UNSIGNED-PAYLOAD", "0" * 64, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"):
        with pytest.raises(BadRequest, match="not the SHA-256"):
            read("POST", f"{AT}?delete", {"x-amz-content-sha256": claimed}, body=deletion("wh/t/a"))


BOMB = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "body",
    [
        "",
        "x",
        "<Delete></Delete>",
        "<Delete><Object/></Delete>",
        "<delete><Object><Key>wh/t/a</Key></Object></delete>",
        "<Delete><Object><Key>wh/t/a</Key><Key>wh/x/a</Key></Object></Delete>",
        "<Delete><Object><Key>wh/t/a</Key><VersionId>1</VersionId></Object></Delete>",
        "<Delete><Object><Key>wh/t/a<b/></Key></Object></Delete>",
        "<Delete><Object><Key>wh/t/<!-- -->a</Key></Object></Delete>",
        "<Delete><Object><Key>wh/t/<![CDATA[a]]></Key></Object></Delete>",
        "<Delete><Object><Key>wh/t/<?p?>a</Key></Object></Delete>",
        "<Delete><Object x='1'><Key>wh/t/a</Key></Object></Delete>",
        "<s:Delete xmlns:s='x'><s:Object><s:Key>wh/t/a</s:Key></s:Object></s:Delete>",
        "<?xml version='1.0' encoding='utf-16'?><Delete><Object><Key>wh/t/a</Key></Object></Delete>",
        "<Delete><Object><Key>wh/t/../x/a</Key></Object></Delete>",
        "<Delete><Object><Key></Key></Object></Delete>",
        "<Delete><Object><Key>wh/t/a</Key></Object></Delete><Delete/>",
        "<Delete><Object><Key>wh/t/\ud800</Key></Object></Delete>",
        f"{BOMB}<Delete><Object><Key>&b;</Key></Object></Delete>",
        "<!DOCTYPE d SYSTEM 'file:///etc/passwd'><Delete><Object><Key>wh/t/a</Key></Object></Delete>",
        "<Delete><Object><Key>&undefined;</Key></Object></Delete>",
        "<Delete>" * 100_000,
        deletion(*(f"wh/t/{number}" for number in range(1001))),
    ],
)
def test_bodies_that_two_parsers_could_read_differently_are_refused(body: str) -> None:
    with pytest.raises(BadRequest):
        read("POST", f"{AT}?delete", body=body)


def test_a_copy_reads_its_source() -> None:
    found = read("PUT", f"{AT}/wh/t/f", {"x-amz-copy-source": "/lake/wh/t/%C3%A9"})
    assert found.keys == ["wh/t/f", "wh/t/é"]
    assert not is_inside(read("PUT", f"{AT}/wh/t/f", {"X-Amz-Copy-Source": "lake/wh/x/f"}))
    refused: tuple[tuple[str, str, type[LakewardenError]], ...] = (
        ("PUT", "other/wh/t/f", Forbidden),
        ("PUT", "lake/wh/t/f?versionId=1", BadRequest),
        ("PUT", "lake/wh/t/../x/f", BadRequest),
        ("PUT", "lake/wh%2Ft/f", BadRequest),
        ("PUT", "lake/wh/t/a+b", BadRequest),
        ("PUT", "lake", BadRequest),
        ("PUT", "arn:aws:s3:eu:1:accesspoint/a/object/f", Forbidden),
        ("GET", "lake/wh/t/f", BadRequest),
    )
    for method, source, error in refused:
        with pytest.raises(error):
            read(method, f"{AT}/wh/t/f", {"x-amz-copy-source": source})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-amz-acl", "public-read"),
        ("x-amz-grant-read", "id=1"),
        ("x-amz-tagging", "public=yes"),
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-bypass-governance-retention", "true"),
        ("x-amz-website-redirect-location", "https://evil.org"),
        ("x-amz-security-token", "x"),
        ("x-amz-rename-source", "wh/x/f"),
        ("x-amz-mfa", "1"),
        ("x-amz-meta-snowball-auto-extract", "true"),
        ("X-Amz-Meta-Minio-Snowball-Prefix", "wh/x"),
    ],
)
def test_headers_that_reach_further_are_refused(name: str, value: str) -> None:
    with pytest.raises(Forbidden):
        read("PUT", f"{AT}/wh/t/f", {name: value})


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-meta-a": "b\r\nx-amz-acl: public-read"},
        {"x-amz-meta-a\r\nx-amz-acl": "b"},
        {"x-amz-meta-a": "b\x00"},
        {"Content-Type": "a\nb"},
        {"a b": "c"},
        {"": "c"},
        {"Content-Type": "a", "content-type": "b"},
        {"x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
        {"x-amz-content-sha256": ["UNSIGNED-PAYLOAD", "UNSIGNED-PAYLOAD"]},
        {"host": ["s3.example.org:9000", "s3.example.org:9000"]},
        {f"x-amz-meta-{number}": "a" for number in range(101)},
        {"x-amz-meta-a": "a" * 20_000},
    ],
)
def test_headers_that_inject_or_contradict_others_are_refused(headers: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        read("PUT", f"{AT}/wh/t/f", headers)


def test_what_is_written_is_signed_and_what_changes_from_try_to_try_is_not() -> None:
    changing = {
        "Range": "bytes=0-1",
        "amz-sdk-invocation-id": "a",
        "amz-sdk-request": "attempt=1",
        "amz-sdk-retry": "0",
    }
    sent: dict[str, str | list[str]] = {
        "Content-Type": " text/plain ",
        "x-amz-meta-A": ["a  b", "c"],
        "User-Agent": "x",
        "X-Amz-Date": "old",
    }
    found = read("PUT", f"{AT}/wh/t/f", {**changing, **sent})
    assert found.canonical.headers == {"content-type": "text/plain", "x-amz-meta-a": "a b,c"}
    assert read("GET", f"{AT}/wh/t/f", {**changing, "If-Match": "x"}).canonical.headers == {}
    assert found.canonical.payload == "UNSIGNED-PAYLOAD"
    digest = "0" * 64
    assert read("PUT", f"{AT}/wh/t/f", {"X-Amz-Content-Sha256": digest}).canonical.payload == digest


def test_a_write_to_a_store_that_takes_further_headers_cannot_become_a_copy() -> None:
    """AWS refuses headers that are added to a signed request."""
    compatible = rules(flavor="s3-compat")
    copied, extracted = "x-amz-copy-source-if-match", "x-amz-meta-snowball-auto-extract"
    plain = read("PUT", f"{AT}/wh/t/f", by=compatible)
    assert plain.guards.keys() == {copied, extracted}
    assert plain.guards.items() <= plain.canonical.headers.items()
    assert read("PUT", f"{AT}/wh/t/f?partNumber=1&uploadId=x", by=compatible).guards == plain.guards
    copy = read("PUT", f"{AT}/wh/t/f", {"x-amz-copy-source": "lake/wh/t/g"}, by=compatible)
    assert copy.guards.keys() == {extracted}
    assert read("GET", f"{AT}/wh/t/f", by=compatible).guards == {}
    assert read("PUT", f"{AT}/wh/t/f").guards == {}


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (Bounds(uri_characters=50), "at most 50 are allowed"),
        (Bounds(headers=1), "there are 2, and at most 1 are allowed"),
        (Bounds(header_bytes=9), "more than 9 bytes"),
    ],
)
def test_the_size_of_requests_is_a_setting(bounds: Bounds, words: str) -> None:
    bounded = SigningRules("lake", RULES._hosts, is_aws=True, bounds=bounds)
    headers = {"range": "bytes=0-9", "accept": "*/*"}
    read("GET", f"{AT}/wh/t/data/0123456789.parquet", headers)
    with pytest.raises(BadRequest, match=words):
        read("GET", f"{AT}/wh/t/data/0123456789.parquet", headers, by=bounded)
