"""docker/compose.yaml against the schema of the Compose Specification, as it comes with the specification's own library."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from standalone.go_programs import TOOLS, find_go
from tests.servers.helm import ROOT

MODULE = "github.com/compose-spec/compose-go/v2"


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    go = find_go()
    assert go is not None, "Go is missing: install it"
    command: list[str | Path] = [go, "mod", "download", "-json", MODULE]
    done = subprocess.run(command, cwd=TOOLS / "compose", capture_output=True, text=True, timeout=300, check=True)
    folder = Path(json.loads(done.stdout)["Dir"])
    return Draft202012Validator(json.loads((folder / "schema" / "compose-spec.json").read_text()))


def test_the_compose_file_is_valid_and_a_misspelt_member_is_not(schema: Draft202012Validator) -> None:
    content: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    schema.validate(content)
    content["services"]["server"]["helthcheck"] = {"disable": True}
    with pytest.raises(ValidationError, match="helthcheck"):
        schema.validate(content)
