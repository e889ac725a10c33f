"""An OpenAPI document against which answers are checked: which schema an answer must fit, and whether it does."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.servers.asgi_client import Answer

_FAILED = 400
_UNCHANGED = 304


class Described:
    """One document; `name` stands in the messages of failed tests.

    `errors` are the schemas of refusals and failures, by path template; those of all others by "".
    """

    def __init__(self, name: str, document: dict[str, Any], *, errors: Mapping[str, str]) -> None:
        self.name = name
        self.document = document
        self._errors = errors
        self._validators: dict[str, Validator] = {}

    @property
    def templates(self) -> list[str]:
        """The path templates, as the document writes them."""
        return list(self.document["paths"])

    def operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Method, path template and operation of all that is documented."""
        return [
            (method.upper(), template, operation)
            for template, item in self.document["paths"].items()
            for method, operation in item.items()
            if method != "parameters"
        ]

    def check(self, method: str, path: str, answer: Answer) -> None:
        """AssertionError when the document does not know the status of this answer, or its body breaks the schema."""
        pointer = self.pointer(method, path, answer.status)
        if method == "HEAD" or pointer is None or answer.status == _UNCHANGED:
            assert answer.body == b"", f"{self.name}: {method} {path} → {answer.status} has no body"
            return
        assert answer.headers["content-type"] == "application/json"
        if "content-encoding" in answer.headers:
            return  # what it unpacks to is compared with the plain answer by the tests that ask for it
        problem = best_match(self.validator(pointer).iter_errors(json.loads(answer.body)))
        assert problem is None, (
            f"{self.name}: {method} {path} → {answer.status}: {problem.message} at {problem.json_path}"
        )

    def pointer(self, method: str, path: str, status: int) -> str | None:
        """Where the schema of this answer's body stands; None when it has no body."""
        template = self.template(path)
        if status >= _FAILED:
            return self._errors.get(template or "", self._errors[""])
        assert template is not None, f"{self.name}: {method} {path} is not documented, but answers {status}"
        responses = self.document["paths"][template][method.lower()]["responses"]
        assert str(status) in responses, f"{self.name}: {method} {template} never answers {status}: {sorted(responses)}"
        pointer = f"#/paths/{_escape(template)}/{method.lower()}/responses/{status}"
        response = responses[str(status)]
        if "$ref" in response:
            pointer = response["$ref"]
            response = self.document["components"]["responses"][pointer.rpartition("/")[2]]
        return f"{pointer}/content/application~1json/schema" if "content" in response else None

    def template(self, path: str) -> str | None:
        return next((each.template for each in self._routes if each.pattern.fullmatch(path)), None)

    def validator(self, pointer: str) -> Validator:
        if pointer not in self._validators:
            self._validators[pointer] = Draft202012Validator(
                {"$ref": f"urn:document{pointer}"},
                registry=self._registry,
                format_checker=Draft202012Validator.FORMAT_CHECKER,
            )
        return self._validators[pointer]

    @cached_property
    def _registry(self) -> Registry[Any]:
        resource = Resource.from_contents(self.document, default_specification=DRAFT202012)
        registry: Registry[Any] = Registry().with_resource("urn:document", resource)
        return registry

    @cached_property
    def _routes(self) -> list["_Route"]:
        """Templates with fewer variables first: a literal segment goes before a variable one."""
        ordered = sorted(self.templates, key=lambda template: template.count("{"))
        return [_Route(each, re.compile(re.sub(r"\{[^}]*\}", "[^/]+", each))) for each in ordered]


@dataclass(frozen=True)
class _Route:
    template: str
    pattern: re.Pattern[str]


def _escape(template: str) -> str:
    return template.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
