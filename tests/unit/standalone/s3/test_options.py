import io
from pathlib import Path

import pytest

from standalone.errors import EmbeddedError
from standalone.options import DevOptions
from standalone.s3.options import S3Options

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}


def test_keys_of_a_running_store_are_in_the_environment() -> None:
    options = S3Options(endpoint="http://127.0.0.1:9000")
    options.check(KEYS)
    assert (options.keys(KEYS).access_key_id, options.keys(KEYS).secret_access_key) == ("id", "secret")


@pytest.mark.parametrize(
    ("endpoint", "environ", "says"),
    [
        ("127.0.0.1:9000", KEYS, "must be an address such as http://127.0.0.1:9000"),
        ("http://id:secret@127.0.0.1:9000", KEYS, "must be an address such as http://127.0.0.1:9000, without keys"),
        ("http://127.0.0.1:9000", {"AWS_ACCESS_KEY_ID": "id"}, "in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("http://127.0.0.1:9000", KEYS | {"AWS_SESSION_TOKEN": "t"}, "AWS_SESSION_TOKEN is set"),
    ],
)
def test_what_cannot_work_is_refused_without_a_secret(endpoint: str, environ: dict[str, str], says: str) -> None:
    with pytest.raises(EmbeddedError, match=says) as refusal:
        S3Options(endpoint=endpoint).check(environ)
    assert "secret" not in str(refusal.value)


def test_options_of_a_bucket_belong_to_its_kind(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="belong to --warehouse s3"):
        DevOptions(tmp_path, s3=S3Options(bucket="mine"), progress=io.StringIO()).check()
