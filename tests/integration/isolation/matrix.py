"""Every route, with the ids that a caller may put into it."""

from tests.integration.isolation.cases import CATALOG, Case, generic_tables, lakehouse
from tests.integration.isolation.management_cases import management

MANAGEMENT = management()

CASES: dict[str, list[Case]] = {**CATALOG, **generic_tables(), **lakehouse(), **MANAGEMENT}
