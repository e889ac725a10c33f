"""The machine's certificate authorities as a Java trust store, for a Java that brings only its own list.

A Java from a system package already trusts what the system trusts; the one from a wheel does not, so behind a
company's proxy it could reach nothing. The store holds public certificates only: its password hides nothing.
"""

import hashlib
import ssl
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

from pipeline.spark.java import Java

STORE_PASSWORD = "changeit"  # noqa: S105  what every Java uses for a store of public certificates


def trust_options(java: Java, *, cache: Path) -> list[str]:
    """JVM options that make `java` trust the system's authorities; none for a Java that does so by itself."""
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True) if java.is_bundled else []
    if not authorities:
        return []
    name = hashlib.sha256(b"".join(sorted(authorities))).hexdigest()[:16]
    store = cache / "trust" / f"{name}.p12"
    if not store.is_file():
        _write(store, authorities)
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
    ]


def _write(store: Path, authorities: list[bytes]) -> None:
    entries = [
        PKCS12Certificate(certificate, f"authority-{number}".encode())
        for number, certificate in enumerate(_readable(authorities))
    ]
    content = serialize_java_truststore(entries, BestAvailableEncryption(STORE_PASSWORD.encode()))
    store.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=store.parent, suffix=".part", delete=False) as partial:
        partial.write(content)
    Path(partial.name).replace(store)


def _readable(authorities: list[bytes]) -> Iterator[x509.Certificate]:
    """A system's list may hold an old certificate that breaks today's rules: the others still count."""
    for der in authorities:
        with suppress(ValueError):
            yield _parse(der)


def _parse(der: bytes) -> x509.Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x509.load_der_x509_certificate(der)
