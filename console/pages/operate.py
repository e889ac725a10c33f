"""For those who operate the server: what `lakewarden doctor` finds, and how far events are."""

from threading import Lock
from typing import Final

from cachetools import TTLCache, cached
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from console.visits import Visit, form, page
from lakewarden import config
from lakewarden.authz.actions import ServerAction
from lakewarden.doctor import checks
from lakewarden.doctor.findings import Finding, State
from lakewarden.errors import InvalidArgument, LakewardenError
from lakewarden.events import administration, dead_letters, progress
from tenants import access

LETTERS: Final = 50
_REMEMBERED_S: Final = 20
_OF_TENANTS: Final = "warehouse"
"""How the names of findings begin that are about one warehouse."""
_ONE_AT_A_TIME: Final = Lock()


@page
def status(visit: Visit) -> HttpResponse:
    """For administrators of the server; a part of the page with the findings is loaded after it."""
    granted = access.server(visit.context, ServerAction.READ_EVENT_DELIVERY)
    if not visit.is_partial and "now" not in visit.query:
        return visit.render("status.html", section="status")
    with _ONE_AT_A_TIME:
        found = _findings()
    if not granted.allows(ServerAction.CONTROL_EVENT_DELIVERY):
        # administrators manage the server, but see no warehouses: only operators see everything
        found = [each for each in found if not each.name.startswith(_OF_TENANTS)]
    bad = [each for each in found if each.state is not State.OK]
    template = "parts/findings.html" if visit.is_partial else "status.html"
    return visit.render(
        template, section="status", findings=[*bad, *(each for each in found if each not in bad)], bad=bad
    )


@cached(TTLCache(maxsize=1, ttl=_REMEMBERED_S))
def _findings() -> list[Finding]:
    return checks.of_settings(config.current())


@page
def events(visit: Visit) -> HttpResponse:
    """The sinks, and what they refused."""
    granted = access.server(visit.context, ServerAction.READ_EVENT_DELIVERY)
    if visit.is_partial:
        return visit.part("parts/sinks.html", **_delivery())
    return _events(visit, may_control=granted.allows(ServerAction.CONTROL_EVENT_DELIVERY))


@form
def letters(visit: Visit) -> HttpResponse:
    """Send all that a sink refused once more, or drop it."""
    access.server(visit.context, ServerAction.CONTROL_EVENT_DELIVERY)
    asked = visit.request.POST
    sink, verb = asked.get("sink", "")[:255], asked.get("verb", "")
    verbs = {"send": administration.send_again, "drop": administration.drop}
    if verb not in verbs:
        raise InvalidArgument("verb: send or drop is expected")
    if verb == "drop" and asked.get("name") != sink:
        return _events(visit, may_control=True, problem="This is not the name of the sink: nothing was dropped")
    try:
        verbs[verb](sink, None, context=visit.context)
    except LakewardenError as error:
        return _events(visit, may_control=True, problem=error.message)
    return HttpResponseRedirect(reverse("console:events"))


def _events(visit: Visit, *, may_control: bool, problem: str | None = None) -> HttpResponse:
    return visit.render(
        "events.html",
        section="events",
        **_delivery(),
        letters=dead_letters.listed(sink=None, after=0, limit=LETTERS),
        may_control=may_control,
        problem=problem,
    )


def _delivery() -> dict[str, object]:
    return {"sinks": progress.sinks(), "unlogged": progress.unlogged()}
