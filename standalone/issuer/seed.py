"""Creates the development identities if they are missing; called by standalone.identities and by server.py."""

import secrets
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from standalone.issuer.clients import SCOPES, Client, Clients
from standalone.issuer.state import StateDir
from standalone.issuer.users import DevUser, Users

CONSOLE_CLIENT_ID: Final = "lakewarden-console"
CLI_CLIENT_ID: Final = "lakewarden-cli"
ADMIN_CLIENT_ID: Final = "lakewarden-admin"
ENGINE_CLIENT_ID: Final = "lakewarden-engine"
PIPELINE_CLIENT_ID: Final = "lakewarden-pipeline"
OPAQUE_CLIENT_ID: Final = "lakewarden-opaque"

DEVICE_CODE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
TOKEN_EXCHANGE_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a grant's name


@dataclass(frozen=True, slots=True)
class DevCredentials:
    """A confidential client. `subject` is the `sub` of its tokens, `scope` what to ask for."""

    client_id: str
    client_secret: str
    subject: str
    scope: str


@dataclass(frozen=True, slots=True)
class DevIdentities:
    """The client `opaque` gets opaque access tokens, for trying introspection."""

    admin: DevCredentials
    engine: DevCredentials
    pipeline: DevCredentials
    opaque: DevCredentials
    user: DevUser


def prepare(state_dir: Path) -> DevIdentities:
    """Return the development identities of this directory, after creating those that are missing.

    Raises:
        StartRefused: the directory cannot be used or holds a damaged file.

    """
    state = StateDir(state_dir)
    with state.locked():
        admin, engine, pipeline, opaque, *_ = Clients(state).ensure(
            _confidential(ADMIN_CLIENT_ID),
            _confidential(ENGINE_CLIENT_ID),
            _confidential(PIPELINE_CLIENT_ID),
            replace(_confidential(OPAQUE_CLIENT_ID), token_format="opaque"),  # noqa: S106 - a format's name
            _public(CONSOLE_CLIENT_ID, grant="authorization_code"),
            _public(CLI_CLIENT_ID, grant=DEVICE_CODE_GRANT),
        )
        user = Users(state).ensure(_person())
    return DevIdentities(
        admin=_credentials(admin),
        engine=_credentials(engine),
        pipeline=_credentials(pipeline),
        opaque=_credentials(opaque),
        user=user,
    )


def _confidential(client_id: str) -> Client:
    return Client(
        client_id=client_id,
        client_secret=secrets.token_urlsafe(32),
        grant_types=("client_credentials", TOKEN_EXCHANGE_GRANT),
        scopes=("catalog", "sign"),
        default_scopes=("catalog",),
    )


def _public(client_id: str, *, grant: str) -> Client:
    return Client(
        client_id=client_id,
        client_secret=None,
        grant_types=(grant, "refresh_token", TOKEN_EXCHANGE_GRANT),
        scopes=SCOPES,
        default_scopes=("openid", "profile", "email", "catalog"),
    )


def _person() -> DevUser:
    return DevUser(
        username="dana",
        password=secrets.token_urlsafe(12),
        subject=str(uuid.uuid4()),
        name="Dana Waters",
        email="dana@example.com",
    )


def _credentials(client: Client) -> DevCredentials:
    return DevCredentials(
        client_id=client.client_id,
        client_secret=client.client_secret or "",
        subject=client.client_id,
        scope=" ".join(client.default_scopes),
    )
