"""Executes a mutation once for its `Idempotency-Key` and repeats its response; for api.py.

A repeated request runs again up to the change, which fails because the first request has the key, and is rolled back.
So the view's own authorization decides whether the caller may still get the response.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from rest_framework import status
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from lakewarden.errors import CommitStateUnknown, Conflict, Forbidden, LakewardenError, NotAuthorized, NotFound
from lakewarden.http.errors import error_body
from lakewarden.http.repeatable import REMEMBERED, TERMINAL
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_response
from lakewarden.idempotency import outcomes
from lakewarden.idempotency.outcomes import Outcome, RepeatedRequest

MUTATING: Final = frozenset({"POST", "PUT", "DELETE"})
HEADER: Final = "idempotency-key"

_LOOKS: Final = 10
_PAUSE_S: Final = 0.05  # seconds between two checks for the response of a request that is still running

Run = Callable[[ApiRequest], Response]


def once(call: ApiRequest, run: Run) -> Response:
    """The response of `run`, or that of an earlier request of the same caller with this key.

    Raises BadRequest if the key was used for a different request, and what `run` raises.
    """
    project, value = call.context.project_id, call.headers[HEADER]
    key = outcomes.parse(value, project_id=project, method=call.method, path=call.path, body=call.body)
    call = replace(call, context=replace(call.context, idempotency=key))
    earlier = outcomes.find(call.context)
    if earlier is not None:
        return _again(call, run)
    try:
        response = run(call)
    except CommitStateUnknown:
        raise  # the change may have been committed: a repeated request finds out by its key
    except RepeatedRequest:
        return _again(call, run)
    except LakewardenError as error:
        if error.status not in TERMINAL:
            raise
        with suppress(RepeatedRequest):
            body = json_response(error_body(error, error.message[:REMEMBERED])).content
            outcomes.remember_refusal(call.context, status=error.status, body=body)
            raise
        return _again(call, run)  # another request with the key was first, which may be why this one failed
    outcomes.remember_answer(call.context, status=response.status_code, body=_body(response))
    return response


def _again(call: ApiRequest, run: Run) -> Response:
    try:
        run(call)
    except (NotAuthorized, Forbidden):
        raise
    except NotFound:
        if call.method != "DELETE":
            raise
    except LakewardenError as error:
        # refused only because the change was made already: parsing and authorization come first and were successful
        if error.status not in TERMINAL:
            raise
    return _repeated_response(call)


def _repeated_response(call: ApiRequest) -> Response:
    for _ in range(_LOOKS):
        earlier = outcomes.find(call.context)
        answer = earlier and (earlier.refusal or earlier.answer)
        if answer:
            code, body = answer
            return Response(json.loads(body) if body else None, status=code)
        time.sleep(_PAUSE_S)
    return _without_answer(call, earlier)


def _without_answer(call: ApiRequest, earlier: Outcome | None) -> Response:
    if call.method == "DELETE":
        return Response(status=status.HTTP_204_NO_CONTENT)
    what = f"{earlier.object_type} {earlier.object_id}" if earlier else "object"
    raise Conflict(
        f"A request with this Idempotency-Key was carried out, but its response was not stored: read the {what}"
    )


def _body(response: Response) -> bytes:
    return b"" if response.data is None else bytes(JSONRenderer().render(response.data))
