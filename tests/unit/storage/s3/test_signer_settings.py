from uuid import UUID

from lakewarden.storage.client_access import ClientRoutes
from lakewarden.storage.s3.signer_settings import signer_path, signer_settings

WAREHOUSE, TABLE = UUID(int=1), UUID(int=2)


def test_engines_of_any_age_ask_the_signer_of_the_table() -> None:
    path = signer_path(WAREHOUSE, TABLE)
    settings = signer_settings(ClientRoutes("https://lake.example.org/catalog", "", path))
    for prefix in ("", "s3."):
        url = f"{settings[prefix + 'signer.uri']}/{settings[prefix + 'signer.endpoint']}"
        assert url == f"https://lake.example.org/catalog/v1/signer/{WAREHOUSE}/tabular-id/{TABLE}/v1/aws/s3/sign"
    assert settings["s3.remote-signing-enabled"] == "true"
