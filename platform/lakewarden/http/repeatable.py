"""Endpoints that support `Idempotency-Key`: a repeated request changes nothing and gets the same answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from django.http import HttpResponse

from lakewarden.context import RequestContext
from lakewarden.errors import CommitStateUnknown, LakewardenError
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.errors import error_body
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_response
from lakewarden.idempotency import outcomes
from lakewarden.idempotency.outcomes import Outcome, RepeatedRequest

TERMINAL = {400, 406, 409, 422}
"""Statuses of final refusals, which are stored; others (such as 403 or 503) may be different next time."""

REMEMBERED = 1000
"""Characters of a refusal's message that are stored."""


def with_key(context: RequestContext, value: str, *, method: str, path: str, body: bytes) -> RequestContext:
    """The context of a request with this `Idempotency-Key`; raises as `outcomes.parse`."""
    key = outcomes.parse(value, project_id=context.project_id, method=method, path=path, body=body)
    return replace(context, idempotency=key)


class RepeatableEndpoint(Endpoint, ABC):
    def perform(self, call: ApiRequest, method: Callable[..., HttpResponse], path: dict[str, str]) -> HttpResponse:
        value = call.headers.get("idempotency-key")
        if value is None or call.method not in {"POST", "DELETE"}:
            return method(call, **path)
        context = with_key(call.context, value, method=call.method, path=call.path, body=call.body)
        call = replace(call, context=context)
        earlier = outcomes.find(call.context)
        if earlier is not None:
            return self.replay(call, earlier, **path)
        try:
            return method(call, **path)
        except CommitStateUnknown:
            raise  # the change may have been committed: a repeated request finds out by its key
        except LakewardenError as error:
            if error.status in TERMINAL and not isinstance(error, RepeatedRequest):
                with suppress(RepeatedRequest):
                    body = json_response(error_body(error, error.message[:REMEMBERED])).content
                    outcomes.remember_refusal(call.context, status=error.status, body=body)
                    raise
            # another request with the same key may have made the change, which may be why this one failed
            earlier = outcomes.find(call.context)
            if earlier is None:
                raise
            return self.replay(call, earlier, **path)

    @abstractmethod
    def replay(self, request: ApiRequest, earlier: Outcome, **path: str) -> HttpResponse:
        """The answer to a repeated request; the caller's rights are checked again."""
