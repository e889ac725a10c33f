"""The device flow (RFC 8628): a terminal shows a code that a user confirms; registered by provider.py."""

# mypy: disallow-subclassing-any=false
# (authlib carries no types)

import time
from typing import TYPE_CHECKING, Any

from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidRequestError
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant

from standalone.issuer.browser_grants import ANY_CLIENT, Response
from standalone.issuer.pending import DEVICE_LIFETIME_S, PendingDevice
from standalone.issuer.users import DevUser

if TYPE_CHECKING:
    from standalone.issuer.provider import Provider


class DeviceGrant(DeviceCodeGrant):
    """RFC 8628 section 3.4."""

    server: "Provider"

    def query_device_credential(self, device_code: str) -> PendingDevice:
        device = self.server.devices.find(device_code)
        if device is None:
            raise InvalidGrantError("The device code is unknown, expired or already used: start again.")
        return device

    def query_user_grant(self, user_code: str) -> tuple[DevUser | None, bool] | None:
        device = self.server.device_of(user_code)
        if device is None or device.is_approved is None or device.subject is None:
            return None
        return self.server.users.find(device.subject), device.is_approved

    def should_slow_down(self, credential: PendingDevice) -> bool:
        return credential.polls_too_often()

    def create_token_response(self) -> Response:
        if self.server.devices.take(self.request.payload.data["device_code"]) is None:
            raise InvalidGrantError("The device code was already used: start again.")
        response: Response = super().create_token_response()
        return response


class DeviceEndpoint(DeviceAuthorizationEndpoint):
    """RFC 8628 sections 3.1 and 3.2."""

    CLIENT_AUTH_METHODS = ANY_CLIENT
    EXPIRES_IN = DEVICE_LIFETIME_S
    INTERVAL = 1
    server: "Provider"

    def get_verification_uri(self) -> str:
        return f"{self.server.issuer}/device"

    def save_device_credential(self, client_id: str, scope: str | None, data: dict[str, Any]) -> None:
        client = self.server.query_client(client_id)
        if client is None or not client.check_grant_type(DeviceGrant.GRANT_TYPE):
            raise InvalidRequestError("This client may not use the device flow.")
        device = PendingDevice(
            client_id=client_id,
            scope=client.get_allowed_scope(scope),
            user_code=data["user_code"],
            expires_at=time.time() + self.EXPIRES_IN,
            interval_s=self.INTERVAL,
        )
        self.server.devices.add(data["device_code"], device)
