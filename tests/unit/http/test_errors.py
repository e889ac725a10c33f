import json
from typing import Any

import pytest
from django.core.exceptions import SuspiciousOperation
from django.db import IntegrityError, InterfaceError, OperationalError
from django.test import RequestFactory

from lakewarden import errors
from lakewarden.database import begin_request
from lakewarden.errors import LakewardenError
from lakewarden.http.errors import bad_request, not_found, render_error, server_error


@pytest.fixture(autouse=True)
def _fresh_request() -> None:
    """Other tests of this process may have committed something."""
    begin_request()


def body(response: Any) -> dict[str, Any]:
    told = json.loads(response.content)
    assert set(told) == {"error"}
    return dict(told["error"])


def every_error() -> list[type[LakewardenError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, LakewardenError)]


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: str(kind.__name__))
def test_an_error_tells_its_message_type_and_status(kind: type[LakewardenError]) -> None:
    response = render_error(kind("What was wrong"), "request-1")
    told = body(response)
    assert told["message"].startswith("What was wrong")
    assert ("(request id request-1)" in told["message"]) is (kind.status >= 500)
    assert (told["type"], told["code"]) == (kind.wire_type, kind.status)
    assert response.status_code == kind.status
    assert response["X-Request-Id"] == "request-1"


def test_types_are_what_clients_know() -> None:
    assert all(
        kind.wire_type.endswith("Exception") for kind in every_error() if kind.status != 500 or "State" in kind.__name__
    )


def test_who_is_not_known_is_told_how_to_sign_in() -> None:
    assert render_error(errors.NotAuthorized("x"), "1")["WWW-Authenticate"].startswith("Bearer")


def test_what_may_be_tried_again_says_when_and_nothing_else_does() -> None:
    assert render_error(errors.Unavailable("x", retry_after_s=7), "1")["Retry-After"] == "7"
    assert "Retry-After" not in render_error(errors.CommitStateUnknown("x"), "1")


@pytest.mark.parametrize("error", [OperationalError("password=secret"), InterfaceError("secret")])
def test_a_database_that_is_away_is_unavailable(error: Exception) -> None:
    response = render_error(error, "1")
    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert b"secret" not in response.content


@pytest.mark.parametrize("error", [ZeroDivisionError("secret"), IntegrityError("secret"), KeyError("secret")])
def test_a_defect_tells_nothing_but_the_request(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    response = render_error(error, "request-1")
    assert body(response)["type"] == "InternalServerError"
    assert b"secret" not in response.content
    assert b"request-1" in response.content
    assert "request-1" in caplog.text
    assert "secret" in caplog.text


def test_what_django_refuses_is_a_bad_request() -> None:
    assert body(render_error(SuspiciousOperation("Too many fields"), "1"))["type"] == "BadRequestException"


def test_djangos_own_pages_are_in_our_shape() -> None:
    request = RequestFactory().get("/nowhere")
    found = [body(page(request)) for page in (not_found, bad_request, server_error)]
    assert [(each["code"], each["type"]) for each in found] == [
        (404, "NoSuchRouteException"),
        (400, "BadRequestException"),
        (500, "InternalServerError"),
    ]
    assert "GET /nowhere" in found[0]["message"]


def test_a_message_that_repeats_a_long_value_keeps_its_beginning_and_its_end() -> None:
    told = body(render_error(errors.BadRequest(f"Invalid id {'x' * 100_000}: letters are expected"), "1"))
    assert told["message"].startswith("Invalid id xxx")
    assert told["message"].endswith("xxx: letters are expected")
    assert len(told["message"]) < 8192
