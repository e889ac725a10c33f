"""Under which hosts a warehouse's bucket is reached, and how a URL there names the bucket."""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from lakewarden.storage.s3.profile import S3Profile

_ADDRESS = re.compile(r"\[.*\]|[0-9.]+")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Place(NamedTuple):
    """The bucket under one host: all paths below `before`.

    `names` are what a client may write in the header `host`, the usual one first.
    """

    before: str
    names: tuple[str, ...]


class Hosts:
    """A name below the store's (`bucket.store`) is known only where the profile does not exclude it.

    To a store that knows no such names, the first folder of the path would be the bucket: a table in a folder that is
    called like another bucket could reach into that one.
    """

    def __init__(self, profile: S3Profile) -> None:
        style = profile.remote_signing_url_style
        by_path = style in {"auto", "path"}
        by_name = style == "virtual-host" or (style == "auto" and not profile.path_style_access)
        self._places: dict[tuple[str, str], Place] = {}
        for scheme, host, port, path in _stores(profile):
            if by_name and not _ADDRESS.fullmatch(host):
                self._add(scheme, f"{profile.bucket}.{host}", port, path)
            if by_path:
                self._add(scheme, host, port, f"{path}/{profile.bucket}")
        self._shown = ", ".join(sorted({f"{scheme}://{place.names[0]}" for (scheme, _), place in self._places.items()}))

    def __str__(self) -> str:
        return self._shown

    def find(self, scheme: str, host: str) -> Place | None:
        """`host` with its port, if it has one, as in a URL."""
        return self._places.get((scheme, host)) or self._places.get((scheme, host.lower()))

    def _add(self, scheme: str, host: str, port: int, before: str) -> None:
        full = f"{host}:{port}"
        names = (host, full) if port == _DEFAULT_PORTS[scheme] else (full,)
        for name in names:
            self._places[scheme, name] = Place(before, names)


def _stores(profile: S3Profile) -> Iterable[tuple[str, str, int, str]]:
    """Scheme, host, port and path of each endpoint, under which the store and not only the bucket is reached."""
    configured = [each for each in (profile.client_endpoint, profile.endpoint) if each]
    for endpoint in configured:
        parts = urlsplit(endpoint)
        host = parts.hostname or ""
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        yield parts.scheme, f"[{host}]" if ":" in host else host, port, parts.path.rstrip("/")
    if not configured:
        for host in _of_aws(profile.region):
            yield "https", host, 443, ""


def _of_aws(region: str) -> Iterable[str]:
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    yield f"s3.{region}.{domain}"
    yield f"s3.dualstack.{region}.{domain}"
    yield f"s3-fips.{region}.{domain}"
    yield f"s3-fips.dualstack.{region}.{domain}"
    yield f"s3-{region}.{domain}"
    yield f"s3.{domain}"
