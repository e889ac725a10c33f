"""What engines must know to reach a bucket, without any secret: the names are those that they read."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakewarden.storage.s3.profile import S3Profile


def client_settings(profile: "S3Profile") -> dict[str, str]:
    """`region` for older PyIceberg and for engines on Iceberg's C++ and Go libraries, the others for everybody."""
    settings = {
        "s3.region": profile.region,
        "client.region": profile.region,
        "region": profile.region,
        "s3.path-style-access": str(profile.uses_path_style).lower(),
    }
    if endpoint := profile.client_endpoint or profile.endpoint:
        settings["s3.endpoint"] = endpoint
    if profile.push_s3_delete_disabled:
        # the catalog removes the files of dropped tables: engines must not be quicker, and not take those of snapshots
        settings["s3.delete-enabled"] = "false"
    if profile.aws_kms_key_arn:
        settings |= {"s3.sse.type": "kms", "s3.sse.key": profile.aws_kms_key_arn}
    return settings
