"""A caller of a running server with one access token, and how each of its answers looks; for the tests of this lane."""

import json
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import Any

import urllib3


@dataclass(frozen=True)
class Answer:
    """`headers` have lower-case names; `body` is the JSON, or None."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def error(self) -> tuple[int, str]:
        """Status and sentence of an answer in the error model."""
        told = self.body["error"]
        assert told["code"] == self.status
        return self.status, str(told["message"])


@dataclass(frozen=True)
class Caller:
    """`uri` is the server's, `token` is sent with every request."""

    uri: str
    token: str

    def call(self, method: str, path: str, json_body: object = None) -> Answer:
        headers = {"authorization": f"Bearer {self.token}"}
        with urllib3.PoolManager(retries=False, timeout=30.0) as http:
            if json_body is None:
                answer = http.request(method, self.uri + path, headers=headers)
            else:
                answer = http.request(method, self.uri + path, headers=headers, json=json_body)
        body = json.loads(answer.data) if answer.data else None
        return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, body)

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def post(self, path: str, json_body: object) -> Answer:
        return self.call("POST", path, json_body)

    def whoami(self) -> Answer:
        return self.get("/management/v1/whoami")

    @property
    def user(self) -> str:
        """Who that is for the provider `oidc`."""
        return f"oidc~{claims_of(self.token)['sub']}"


def claims_of(token: str) -> dict[str, Any]:
    """What a JWT says, unverified."""
    payload = token.split(".")[1]
    return dict(json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))


def header_of(token: str) -> dict[str, Any]:
    """The JOSE header of a JWT, unverified."""
    header = token.partition(".")[0]
    return dict(json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4))))
