"""Says no to changes that a data contract does not allow, before any file of theirs is written."""

from collections.abc import Sequence
from typing import Final

from catalog.models import Namespace, Tabular
from catalog.services.contracts import effective, verifiers
from catalog.services.contracts.combined import Combined
from catalog.services.contracts.judging import Violation, judge
from catalog.services.contracts.proposals import About, Proposal
from lakewarden.authz.interface import Granted
from lakewarden.context import Refused, RequestContext
from lakewarden.errors import ContractViolated

_MOST_SHOWN: Final = 10


def judged(proposal: Proposal, rules: Combined | None) -> list[Violation]:
    """What the built-in rules say against the change; a change of data alone costs a comparison."""
    if rules is None or not proposal.changes_definition:
        return []
    before = None if proposal.before is None else proposal.before.definition
    return judge(before, proposal.after.definition, rules)


def check(proposal: Proposal, rules: Combined | None) -> None:
    """Raises ContractViolated for what the built-in rules do not allow."""
    if violations := judged(proposal, rules):
        raise refusal(proposal, violations)


def check_and_ask(proposal: Proposal, rules: Combined | None) -> None:
    """As `check`, and asks the verifiers; outside of transactions. Raises Unavailable if one does not answer."""
    check(proposal, rules)
    ask(proposal, rules)


def ask(proposal: Proposal, rules: Combined | None) -> None:
    """The verifiers alone, about a change that was checked."""
    if rules is not None and rules.verifiers and (violations := verifiers.ask(proposal, rules.verifiers)):
        raise refusal(proposal, violations)


def check_creation(proposal: Proposal) -> None:
    """As `check_and_ask`, of an object that is new in its namespace."""
    check_and_ask(proposal, effective.of_namespace(proposal.about.namespace))


def refusal(proposal: Proposal, violations: Sequence[Violation]) -> ContractViolated:
    """The error for violations, which is noted for the audit."""
    about = proposal.about
    shown = "; ".join(map(str, violations[:_MOST_SHOWN]))
    more = f"; and {len(violations) - _MOST_SHOWN} more" if len(violations) > _MOST_SHOWN else ""
    message = f"The data contract does not allow this change of the {about.shown}: {shown}{more}"
    note(proposal.context, about, proposal.change, message)
    return ContractViolated(message)


def note(context: RequestContext, about: About, change: str, message: str) -> None:
    project_id = about.namespace.warehouse.project_id
    if about.uuid is None:
        context.trail.refused = Refused(
            f"{change}_{about.kind}", "namespace", str(about.namespace.id), project_id, message
        )
    else:
        context.trail.refused = Refused(change, about.kind, about.uuid, project_id, message)


def about_tabular(tabular: Tabular) -> About:
    return About(str(tabular.kind), tabular.namespace, tabular.name, str(tabular.uuid))


def about_new(namespace: Granted[Namespace], name: str, kind: Tabular.Kind) -> About:
    return About(kind.value, namespace.target, name)
