"""Users who can sign in at the development issuer, stored in users.json."""

import secrets
from dataclasses import asdict, dataclass
from typing import Any, Final

from standalone.issuer.state import StateDir

USERS_FILE: Final = "users.json"


@dataclass(frozen=True, slots=True)
class DevUser:
    """A user. The password is stored in clear text, because it was generated here and must be shown again.

    `roles` go into the access tokens.
    """

    username: str
    password: str
    subject: str
    name: str
    email: str
    roles: tuple[str, ...] = ()

    def get_user_id(self) -> str:
        return self.subject

    def claims(self) -> dict[str, str]:
        """Standard claims (OpenID Connect Core 1.0, section 5.1) other than `sub`."""
        return {"name": self.name, "preferred_username": self.username, "email": self.email}


class Users:
    """All users; the file is read each time, like that of the clients."""

    def __init__(self, state: StateDir) -> None:
        self._state = state

    def find(self, subject: str) -> DevUser | None:
        return next((user for user in self._all() if user.subject == subject), None)

    def check_password(self, username: str, password: str) -> DevUser | None:
        """Return the user if name and password are correct, else None."""
        for user in self._all():
            is_password = secrets.compare_digest(user.password.encode(), password.encode())
            if user.username == username.strip() and is_password:
                return user
        return None

    def ensure(self, user: DevUser) -> DevUser:
        """Add the user unless the name exists; returns the stored one. The caller must hold the lock."""
        stored = self._state.read(USERS_FILE) or {}
        if user.username not in stored:
            entry = {name: value for name, value in asdict(user).items() if name != "username"}
            self._state.write(USERS_FILE, stored | {user.username: entry})
        return next(each for each in self._all() if each.username == user.username)

    def _all(self) -> list[DevUser]:
        stored: dict[str, dict[str, Any]] = self._state.read(USERS_FILE) or {}
        return [
            DevUser(**entry | {"username": username, "roles": tuple(entry.get("roles", ()))})
            for username, entry in stored.items()
        ]
