from pathlib import Path

from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from pipeline.spark.java import BUNDLED, Java
from pipeline.spark.trust import STORE_PASSWORD, trust_options


def java(source: str) -> Java:
    return Java(Path("/jdk"), Path("/jdk/bin/java"), 21, source, has_incubator_vector=False)


def test_a_systems_java_is_left_as_it_is(tmp_path: Path) -> None:
    assert trust_options(java("PATH"), cache=tmp_path) == []


def test_a_java_from_a_wheel_trusts_what_the_system_trusts(tmp_path: Path) -> None:
    options = trust_options(java(BUNDLED), cache=tmp_path)
    (store,) = (tmp_path / "trust").iterdir()
    assert f"-Djavax.net.ssl.trustStore={store}" in options
    assert len(load_pkcs12(store.read_bytes(), STORE_PASSWORD.encode()).additional_certs) > 0


def test_the_store_is_made_once(tmp_path: Path) -> None:
    trust_options(java(BUNDLED), cache=tmp_path)
    (store,) = (tmp_path / "trust").iterdir()
    made = store.stat().st_mtime_ns
    trust_options(java(BUNDLED), cache=tmp_path)
    assert store.stat().st_mtime_ns == made
