"""A warehouse on a real S3 server, as the management API leaves it: for tests of the catalog and of workers."""

from typing import Any

from lakewarden.db_transaction import changing
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.profiles import parse_profile
from standalone.s3.programs import Keys
from tenants.models import Warehouse
from tenants.services import warehouse_secrets
from tests.servers.s3_server import REGION, S3Server


def sent(server: S3Server, bucket: str, keys: Keys, **more: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The members `storage-profile` and `storage-credential` of a warehouse in `bucket` below the prefix "lake"."""
    fields = {"bucket": bucket, "key-prefix": "lake", "region": REGION, "endpoint": server.endpoint}
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": keys.access_key_id,
        "secret-access-key": keys.secret_access_key,
    }
    return {"type": "s3", "flavor": "s3-compat", "sts-enabled": False} | fields | more, credential


def described(server: S3Server, bucket: str, keys: Keys, **more: Any) -> tuple[StorageProfile, StorageCredential]:
    """As `sent`, read."""
    fields, told = sent(server, bucket, keys, **more)
    profile = parse_profile(fields)
    credential = profile.parse_credential(told)
    assert credential is not None
    return profile, credential


def moved_to(server: S3Server, warehouse: Warehouse, bucket: str, keys: Keys, **more: Any) -> Warehouse:
    """Put the (empty) warehouse into `bucket`."""
    profile, credential = described(server, bucket, keys, **more)
    with warehouse_secrets.kept(credential) as kept, changing():
        warehouse.storage_profile, warehouse.location = profile.dump(), profile.location
        warehouse.storage_secret = kept.reference
        warehouse.save()
    return Warehouse.objects.select_related("project").get(id=warehouse.id)
