"""The issuer's HTTP endpoints for programs; the pages for users are in pages.py; mounted by server.py."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from standalone.issuer.id_tokens import user_info
from standalone.issuer.pages import Pages
from standalone.issuer.provider import Provider

_NO_GRANT: Final = "grant_type is missing: send an application/x-www-form-urlencoded form with grant_type in it."


class Site:
    """All routes; Django takes it as its root URL configuration.

    The routes for programs are exempt from CSRF tokens: they read no cookie.
    """

    def __init__(self, provider: Provider) -> None:
        pages = Pages(provider)
        self._provider = provider
        self.urlpatterns: list[URLPattern] = [
            path("", pages.home),
            path(".well-known/openid-configuration", require_GET(self.discovery)),
            path(".well-known/oauth-authorization-server", require_GET(self.discovery)),
            path("jwks", require_GET(self.jwks)),
            path("token", csrf_exempt(require_POST(self.token))),
            path("device_authorization", csrf_exempt(require_POST(self.device_authorization))),
            path("introspect", csrf_exempt(require_POST(self.introspect))),
            path("revoke", csrf_exempt(require_POST(self.revoke))),
            path("userinfo", csrf_exempt(self.userinfo)),
            path("authorize", pages.authorize),
            path("device", pages.device),
            path("logout", csrf_exempt(pages.logout)),
        ]

    def discovery(self, _request: HttpRequest) -> HttpResponse:
        return JsonResponse(self._provider.metadata())

    def jwks(self, _request: HttpRequest) -> HttpResponse:
        return JsonResponse(self._provider.keys.as_dict(private=False))

    def token(self, request: HttpRequest) -> HttpResponse:
        if not request.POST.get("grant_type"):
            return JsonResponse({"error": "invalid_request", "error_description": _NO_GRANT}, status=400)
        response: HttpResponse = self._provider.create_token_response(request)
        return response

    def device_authorization(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = self._provider.create_endpoint_response("device_authorization", request)
        return response

    def introspect(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = self._provider.create_endpoint_response("introspection", request)
        return response

    def revoke(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = self._provider.create_endpoint_response("revocation", request)
        return response

    def userinfo(self, request: HttpRequest) -> HttpResponse:
        """OpenID Connect Core 1.0, section 5.3."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        claims = self._provider.tokens.read(token.strip()) if scheme.lower() == "bearer" else None
        user = None if claims is None else self._provider.users.find(claims["sub"])
        if claims is None or user is None:
            return _bearer_error(401, "invalid_token", "The access token is missing, has expired or is not a person's.")
        if "openid" not in claims["scope"].split():
            return _bearer_error(403, "insufficient_scope", "The access token lacks the scope openid.")
        return JsonResponse(user_info(user, claims["scope"]))


def _bearer_error(status: int, error: str, description: str) -> HttpResponse:
    body: dict[str, Any] = {"error": error, "error_description": description}
    challenge = f'Bearer error="{error}", error_description="{description}"'
    return JsonResponse(body, status=status, headers={"WWW-Authenticate": challenge})
