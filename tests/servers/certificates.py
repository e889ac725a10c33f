"""A certificate that signs itself, for servers of tests that speak TLS."""

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
        now = datetime.now(UTC)
        names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=3))
            .not_valid_after(now + timedelta(days=-1 if is_expired else 1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        found = cls(folder / "certificate.pem", folder / "key.pem", folder / "certificate.pem")
        found.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return found
