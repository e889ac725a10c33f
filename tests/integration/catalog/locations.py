"""Updates that move a table."""


def move(location: str) -> dict[str, str]:
    return {"action": "set-location", "location": location}
