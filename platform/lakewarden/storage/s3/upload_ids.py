"""Ids of unfinished uploads: some stores make a path of them, which a forged id would lead to files of others."""

import re
from base64 import urlsafe_b64decode
from binascii import Error
from typing import Final

from lakewarden.errors import BadRequest

_PLAIN: Final = re.compile(r"(?!\.)(?!.*\.\.)[A-Za-z0-9._~+/=-]{1,1024}")


def ensure_plain(upload_id: str) -> None:
    """Raises BadRequest for an id that leads out of the folder of its upload, as it is or in Base64.

    versitygw appends the id to a path. MinIO does so with what follows the first dot of the decoded id.
    """
    if not _PLAIN.fullmatch(upload_id) or ".." in _decoded(upload_id).partition(".")[2].split("/"):
        raise BadRequest(f"The uploadId {upload_id[:80]!r} is not one that a store gives")


def _decoded(upload_id: str) -> str:
    try:
        return urlsafe_b64decode(upload_id + "=" * (-len(upload_id) % 4)).decode("latin-1").replace("\\", "/")
    except Error:
        return ""
