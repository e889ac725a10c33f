"""The properties with which engines find the signer of a table's requests to S3."""

from collections.abc import Mapping
from uuid import UUID

from lakewarden.storage.client_access import ClientRoutes

TABLE_SIGNER = "v1/signer/{prefix}/tabular-id/{table_id}/v1/aws/s3/sign"
"""By the table's id, below the catalog's URI: a table keeps it when it is renamed or moved, or is only staged yet."""


def signer_path(warehouse: UUID, table: UUID) -> str:
    """For `ClientRoutes.sign`; `table` is the id that callers know."""
    return TABLE_SIGNER.format(prefix=warehouse, table_id=table)


def signer_settings(routes: ClientRoutes) -> Mapping[str, str]:
    """Engines read the names with `s3.` or those without, by their age; PyIceberg signs with its fsspec files only."""
    return {
        "s3.remote-signing-enabled": "true",
        "s3.signer": "S3V4RestSigner",
        "signer.uri": routes.catalog_uri,
        "signer.endpoint": routes.sign,
        "s3.signer.uri": routes.catalog_uri,
        "s3.signer.endpoint": routes.sign,
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
    }
