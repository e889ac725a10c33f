"""What is stored of the management API's reference document is what it says: `LAKEWARDEN_TEST_MANAGEMENT_OPENAPI`."""

import os
from pathlib import Path

from scripts.compatibility import STORED, stored

VARIABLE = "LAKEWARDEN_TEST_MANAGEMENT_OPENAPI"


def test_the_stored_shapes_are_those_of_the_document() -> None:
    path = os.environ.get(VARIABLE)
    assert path, f"{VARIABLE} must name the OpenAPI document of the API that ours is a drop-in for"
    assert STORED.read_text(encoding="utf-8") == stored(Path(path)), "run `python -m scripts.compatibility FILE`"
