"""What only certain modules may do, read from the code; layers of imports are import-linter's (`.importlinter`)."""

import ast
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "platform",
    "catalog",
    "console",
    "demo",
    "ingest",
    "management",
    "permissions",
    "pipeline",
    "standalone",
    "tenants",
)

DATABASE = ("django.db", "psycopg", "lakewarden.prepared_statements")
MANAGERS = {"objects", "everything", "_default_manager", "_base_manager"}
MAY_USE_THE_DATABASE = {
    "*/models/*": "models",
    "*/models.py": "models",
    "*/migrations/*": "models",
    "catalog/services/*": "services",
    "console/services/sessions.py": "services",
    "ingest/services/*": "services",
    "tenants/services/*": "services",
    "permissions/*": "services",
    "catalog/access.py": "looks up what it decides on, in one statement",
    "catalog/signing_access.py": "looks up what it decides on, by a location",
    "tenants/access.py": "looks up what it decides on, in one statement",
    # rooms of the platform that own tables: each is models and services in one
    "platform/lakewarden/audit/*": "owns tables",
    "platform/lakewarden/authz/*": "owns tables",
    "platform/lakewarden/events/*": "owns tables",
    "platform/lakewarden/idempotency/*": "owns tables",
    "platform/lakewarden/secrets/*": "owns tables",
    "platform/lakewarden/tasks/*": "owns tables",
    "platform/lakewarden/usage/*": "owns tables",
    # the way to the database, which all of them go
    "platform/lakewarden/postgres/*": "opens connections",
    "platform/lakewarden/database.py": "names what a database's errors mean",
    "platform/lakewarden/db_transaction.py": "begins and ends transactions",
    "platform/lakewarden/prepared_statements.py": "runs statements",
    "platform/lakewarden/quotas.py": "counts rows, for services that create them",
    "platform/lakewarden/retention.py": "deletes what is old, for rooms that own tables",
    "platform/lakewarden/schema_version.py": "migrates",
    "platform/lakewarden/hot/coalescer.py": "runs statements for the event loop",
    "platform/lakewarden/hot/sessions.py": "runs look-ups for the event loop",
    "platform/lakewarden/hot/connections.py": "opens connections for the event loop",
    "platform/lakewarden/doctor/*": "asks beside the application, with a connection of its own",
    "platform/lakewarden/http/health.py": "asks whether the database answers",
    "platform/lakewarden/http/log_watch.py": "looks for new events on the event loop",
    "platform/lakewarden/http/background_writer.py": "closes its thread's connection",
    "platform/lakewarden/http/running_queries.py": "stops the statements of callers who have gone",
    "platform/lakewarden/serving/metrics.py": "closes the session that a scrape has opened",
    "platform/lakewarden/serving/run.py": "closes the starting process's connections before it begins others",
    "pipeline/maintenance/ledger.py": "keeps locks and the history with a connection of its own: it knows no Django",
    "pipeline/sources/*": "reads the durable log, and notes there how far it has come",
    "standalone/postgres/server.py": "waits for the server that it starts",
}

BACKENDS = {"database", "openfga", "allow-all"}
COMPARE_BACKENDS = ["platform/lakewarden/config/authorization.py", "platform/lakewarden/config/secrets.py"]


@cache
def sources() -> list[tuple[str, ast.Module]]:
    paths = [path for root in PRODUCT for path in sorted((ROOT / root).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def touches_database(tree: ast.Module) -> bool:
    """Whether a module imports the database's interfaces, or asks a model's manager."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if any(name == each or name.startswith(f"{each}.") for name in names for each in DATABASE):
            return True
        # `Table.objects`: an attribute of a class, not of a value
        if (
            isinstance(node, ast.Attribute)
            and node.attr in MANAGERS
            and isinstance(node.value, ast.Name)
            and node.value.id[:1].isupper()
        ):
            return True
    return False


def compares_backend(tree: ast.Module) -> bool:
    """Whether a module compares something with a backend's name, or the setting with anything."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        constants = {value.value for side in sides for value in ast.walk(side) if isinstance(value, ast.Constant)}
        is_setting = any(isinstance(side, ast.Attribute) and side.attr == "backend" for side in sides)
        if is_setting or constants & (BACKENDS - {"database"}):
            return True
    return False


def test_only_models_services_and_access_touch_the_database() -> None:
    found = {name for name, tree in sources() if touches_database(tree)}
    assert [name for name in found if not any(fnmatch(name, allowed) for allowed in MAY_USE_THE_DATABASE)] == []
    # the list may only shrink: what no longer needs its place loses it
    assert [allowed for allowed in MAY_USE_THE_DATABASE if not any(fnmatch(name, allowed) for name in found)] == []


def test_a_module_that_touches_the_database_is_noticed() -> None:
    for code in (
        "from django.db import transaction",
        "from django import db",
        "import psycopg.errors",
        "from lakewarden.prepared_statements import fetch",
        "from lakewarden import prepared_statements",
        "def f(x):\n    return Namespace.everything.filter(id=x)",
    ):
        assert touches_database(ast.parse(code)), code
    assert not touches_database(ast.parse("from django import apps\nclient.objects('user')"))


def test_a_backends_name_is_compared_in_the_configuration_only() -> None:
    assert [name for name, tree in sources() if compares_backend(tree)] == COMPARE_BACKENDS


def test_a_comparison_of_the_backends_name_is_noticed() -> None:
    assert compares_backend(ast.parse("if settings.authorization.backend == name: pass"))
    assert compares_backend(ast.parse("x = kind in ('openfga', 'allow-all')"))
    assert not compares_backend(ast.parse("raise ValueError('openfga')"))


def test_no_module_imports_from_tests_or_conftest() -> None:
    """What several tests need has a module of its own; conftest modules are imported by pytest alone."""
    found = [
        f"{path.relative_to(ROOT).as_posix()} imports {node.module}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("tests.")
        and (node.module or "").rsplit(".", 1)[-1].startswith(("test_", "conftest"))
    ]
    assert found == []
