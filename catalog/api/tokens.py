"""`POST /v1/oauth/tokens`, deprecated in the specification: the response says where tokens are issued."""

from django.http import HttpRequest, HttpResponse

from lakewarden import config
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import request_id
from lakewarden.http.responses import json_response


class TokenEndpoint(Endpoint):
    """Clients without `oauth2-server-uri` call it first, without a token. The error has the form of OAuth 2.0."""

    def dispatch(self, request: HttpRequest, path: dict[str, str]) -> HttpResponse:  # noqa: ARG002 it has no parts
        issuers = ", ".join(provider.issuer for provider in config.current().openid.values())
        description = (
            "This catalog issues no tokens: set the client's `oauth2-server-uri` to the token endpoint "
            f"of its identity provider ({issuers or 'none is configured'})"
        )
        response = json_response({"error": "unsupported_grant_type", "error_description": description}, status=400)
        response["X-Request-Id"] = request_id(request)
        return response
