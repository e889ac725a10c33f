from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from pipeline.spark.java import BUNDLED, Java
from pipeline.spark.trust import STORE_PASSWORD, trust_options


def java(source: str) -> Java:
    return Java(Path("/jdk"), Path("/jdk/bin/java"), 21, source, has_incubator_vector=False)


@pytest.fixture(autouse=True)
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> x509.Certificate:
    """The only authority that this system trusts."""
    key, now = Ed25519PrivateKey.generate(), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "the company's own")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    (tmp_path / "authorities.pem").write_bytes(made.public_bytes(Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    return made


def test_a_systems_java_is_left_as_it_is(tmp_path: Path) -> None:
    assert trust_options(java("PATH"), cache=tmp_path) == []


def test_a_java_from_a_wheel_trusts_what_the_system_trusts(tmp_path: Path, authority: x509.Certificate) -> None:
    options = trust_options(java(BUNDLED), cache=tmp_path)
    (store,) = (tmp_path / "trust").iterdir()
    assert f"-Djavax.net.ssl.trustStore={store}" in options
    kept = load_pkcs12(store.read_bytes(), STORE_PASSWORD.encode()).additional_certs
    assert [entry.certificate for entry in kept] == [authority]


def test_the_store_is_made_once(tmp_path: Path) -> None:
    trust_options(java(BUNDLED), cache=tmp_path)
    (store,) = (tmp_path / "trust").iterdir()
    made = store.stat().st_mtime_ns
    trust_options(java(BUNDLED), cache=tmp_path)
    assert store.stat().st_mtime_ns == made


def test_a_system_without_authorities_leaves_java_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    assert trust_options(java(BUNDLED), cache=tmp_path) == []
