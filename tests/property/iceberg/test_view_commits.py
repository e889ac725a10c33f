"""Random sequences of view commits: the document stays whole, unknown members survive."""

import json
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.iceberg import views
from catalog.iceberg.views import ViewMetadata
from lakewarden.errors import BadRequest
from tests.property.iceberg.view_commits import view_commit, view_schema, view_version

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
NOW = 1_760_000_000_000
ODD = b'{"n": 1.10, "big": 123456789012345678901234567890}'


def create(rng: random.Random) -> ViewMetadata:
    version = view_version(rng, schema_id=0, at_ms=NOW)
    del version["representations"][1:]
    request = json.dumps({"name": "v", "schema": view_schema(1), "view-version": version}).encode()
    made = views.create(request, uuid=UUID, location="s3://b/v", now_ms=NOW).encode()
    return ViewMetadata.decode(made[:-1] + b',"x-odd":' + ODD + b"}")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_any_sequence_of_commits_leaves_a_whole_view(rng: random.Random) -> None:
    view = create(rng)
    for step in range(8):
        before = view.encode()
        updates = [json.dumps(each).encode() for each in view_commit(rng, NOW + step)]
        try:
            made = views.commit(view, [], updates, now_ms=NOW + step)
        except BadRequest:
            made = view
        assert view.encode() == before
        text = made.encode()
        assert ViewMetadata.read_file(text).encode() == text
        assert b'"x-odd":' + ODD in text
        found = json.loads(text)
        ids = {each["version-id"] for each in found["versions"]}
        assert found["version-log"] == [each for each in found["version-log"] if each["version-id"] in ids]
        view = made
