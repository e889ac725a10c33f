"""Information about the server, and its first administrator: `GET /info`, `POST /bootstrap`."""

from dataclasses import replace
from typing import Final

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden import __version__, config
from lakewarden.errors import BadRequest
from lakewarden.tasks.queues import QUEUES
from management.api import ManagementView
from management.base_serializers import Body, Shape
from tenants.models import User
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import servers

COMPATIBLE_WITH: Final = "0.13.1"
"""The version of the management API that clients find here, if they know it by the number of that server."""


class LicenseShape(Shape):
    license_type = serializers.CharField()
    valid = serializers.BooleanField()


class ConsoleShape(Shape):
    edition = serializers.CharField()
    version = serializers.CharField()


class InfoShape(Shape):
    server_id = serializers.UUIDField()
    bootstrapped = serializers.BooleanField()
    default_project_id = serializers.CharField(required=False)
    authz_backend = serializers.CharField()
    version = serializers.CharField()
    lakekeeper_version = serializers.CharField()
    queues = serializers.ListField(child=serializers.CharField())
    license_status = LicenseShape()
    console = ConsoleShape()
    aws_system_identities_enabled = serializers.BooleanField()
    azure_system_identities_enabled = serializers.BooleanField()
    gcp_system_identities_enabled = serializers.BooleanField()


class Info(ManagementView):
    @extend_schema(responses={200: InfoShape})
    def get(self, _request: Request) -> Response:
        """Read the version and settings of the server. Every authenticated caller may do so."""
        server = servers.this()
        info = {
            "server_id": server.id,
            "bootstrapped": server.bootstrapped_at is not None,
            "default_project_id": DEFAULT_PROJECT_ID if config.current().server.enable_default_project else None,
            "authz_backend": config.current().authorization.backend,
            "version": __version__,
            "lakekeeper_version": COMPATIBLE_WITH,
            "queues": sorted(QUEUES),
            "license_status": {"license_type": "Apache-2.0", "valid": True},
            "console": {"edition": "lakewarden-console", "version": __version__},
            **dict.fromkeys((f"{cloud}_system_identities_enabled" for cloud in ("aws", "azure", "gcp")), False),
        }
        return Response(InfoShape.of(info))


class BootstrapBody(Body):
    accept_terms_of_use = serializers.BooleanField()
    is_operator = serializers.BooleanField(
        default=False,
        help_text="Make the caller an operator instead of an administrator. An operator may do everything in all "
        "projects; "
        "it is meant for automation.",
    )
    user_name = serializers.CharField(required=False, max_length=255)
    user_email = serializers.CharField(required=False, max_length=255)
    user_type = serializers.ChoiceField(choices=User.Type.choices, required=False)


class Bootstrap(ManagementView):
    @extend_schema(request=BootstrapBody, responses={204: None})
    def post(self, _request: Request) -> Response:
        """Make the caller the first administrator of the server.

        The response is 204 once and then 400, until `lakewarden reopen-bootstrap` is run. An administrator manages the
        server and its projects but sees no data. With `is-operator` the caller may do everything everywhere.
        """
        body = self.body(BootstrapBody)
        if not body.get("accept_terms_of_use"):
            raise BadRequest("accept-terms-of-use must be true to bootstrap the server")
        caller = self.context.caller
        described = replace(
            caller,
            name=body.get("user_name", caller.name),
            email=body.get("user_email", caller.email),
            kind=body.get("user_type", caller.kind),
        )
        servers.bootstrap(described, self.context, is_operator=body.get("is_operator"))
        return Response(status=204)


routes = [
    path("info", Info.as_view()),
    path("bootstrap", Bootstrap.as_view()),
]
