"""Certificates for servers of tests that speak TLS: one that signs itself, or those of an authority."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Files in PEM; `authority` is what a client trusts."""

    certificate: Path
    key: Path
    authority: Path

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    @classmethod
    def made(cls, folder: Path, *, host: str = "localhost", is_expired: bool = False) -> Self:
        """For `host` and 127.0.0.1."""
        folder.mkdir(parents=True)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            _dated(name, key.public_key(), issuer=name, ends=timedelta(days=-1 if is_expired else 1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        found = cls(folder / "certificate.pem", folder / "key.pem", folder / "certificate.pem")
        found.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return found


class Authority:
    """Signs certificates of servers, as a company's own authority does; `file` is what their clients trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Authority {folder.name}")])
        signed = (
            _dated(self._name, self._key.public_key(), issuer=self._name, ends=timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "authority.pem"
        self.file.write_bytes(signed.public_bytes(Encoding.PEM))

    def keystore(self, name: str, *, is_expired: bool = False) -> Path:
        """A key and its certificate for localhost and 127.0.0.1, in one file of PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        ends = timedelta(days=-1 if is_expired else 1)
        certificate = (
            _dated(own, key.public_key(), issuer=self._name, ends=ends)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = self._folder / f"{name}.pem"
        file.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        return file


def _dated(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, *, issuer: x509.Name, ends: timedelta
) -> x509.CertificateBuilder:
    """Valid since three days ago, until `ends` from now."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=3))
        .not_valid_after(now + ends)
    )
