"""Checks OpenFGA, if it is the authorizer: reachable, store and model of this version, all changes applied."""

from collections.abc import Iterator

import psycopg

from lakewarden.config import Config
from lakewarden.doctor.findings import Finding, fail, ok, warn
from lakewarden.names import MAX_DEPTH

_NAME = "OpenFGA"
_STALE_AFTER = 1000


def examine(settings: Config) -> Iterator[Finding]:
    if not settings.authorization.by_openfga or settings.database.url is None:
        return
    try:
        row, waiting = _known(settings)
    except psycopg.Error:
        return  # the database's own findings say why
    yield from _store(settings, row)
    if row is not None and waiting > _STALE_AFTER:
        yield warn(
            _NAME,
            f"{waiting} changes of rights have not reached it yet",
            fix="run `lakewarden work`, and look at its log",
        )


def _known(settings: Config) -> tuple[tuple[str, str, str, bool] | None, int]:
    """The row of the store (its id, the model's id and hash, whether it is filled), and the
    number of waiting changes.
    """
    assert settings.database.url is not None  # noqa: S101 checked by the caller
    with psycopg.connect(
        settings.database.url.get_secret_value(), connect_timeout=settings.database.connect_timeout_s, autocommit=True
    ) as connection:
        row = connection.execute(_STORE, [settings.openfga.store]).fetchone()
        counted = connection.execute("select count(*) from authz_change").fetchone()
    return row, counted[0] if counted else 0


def _store(settings: Config, row: tuple[str, str, str, bool] | None) -> Iterator[Finding]:
    import django  # noqa: PLC0415 only for those who use OpenFGA

    django.setup()
    from lakewarden.authz.openfga import client, depth, language  # noqa: PLC0415 its SDK takes time to load
    from lakewarden.errors import Unavailable  # noqa: PLC0415

    if row is None:
        yield fail(_NAME, "has no store for this installation", fix="run `lakewarden migrate`")
        return
    store_id, model_id, model_hash, is_filled = row
    asked = client.OpenFga(settings.openfga, client.Store(store_id, model_id))
    try:
        is_there = asked.has_store() and asked.has_model(model_id)
        longest = {"levels": MAX_DEPTH, "nested": settings.roles.max_nesting_depth}
        is_current = is_there and model_hash == language.model_hash()
        is_deep_enough = not is_current or depth.follows(asked, **longest)
    except Unavailable as error:
        yield fail(
            _NAME,
            error.message.removeprefix("OpenFGA "),
            fix="see that OpenFGA runs at LAKEWARDEN__OPENFGA__API_URL and accepts LAKEWARDEN__OPENFGA__API_TOKEN",
        )
        return
    finally:
        asked.close()
    if not is_there:
        yield fail(_NAME, "no longer has this installation's store or model", fix="run `lakewarden migrate`")
    elif model_hash != language.model_hash():
        yield fail(_NAME, "has the model of another version", fix="run `lakewarden migrate`")
    elif not is_filled:
        yield fail(_NAME, "does not have all rights of the database", fix="run `lakewarden openfga reconcile`")
    else:
        yield ok(_NAME, f"is reachable; its store {settings.openfga.store!r} has the current model")
    if not is_deep_enough:
        yield warn(
            _NAME,
            f"cannot follow {MAX_DEPTH} levels of namespaces and {settings.roles.max_nesting_depth} nested roles: "
            "requests that need a deeper chain are answered 503",
            fix=f"start it with OPENFGA_RESOLVE_NODE_LIMIT={depth.needed(**longest)} (its default is 25), or lower "
            "LAKEWARDEN__ROLES__MAX_NESTING_DEPTH",
        )


_STORE = "select store_id, model_id, model_hash, filled_at is not null from openfga_store where name = %s"
