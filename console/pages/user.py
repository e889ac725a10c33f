"""One user of the server, for its administrators: described anew, or deleted with all their rights."""

from hashlib import sha256

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from console.visits import Visit, form, page
from lakewarden.authz.actions import UserAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import InvalidArgument, LakewardenError
from tenants import access
from tenants.models import User
from tenants.services import user_removal, users


@page
def user(visit: Visit) -> HttpResponse:
    """The user whose id is `id`."""
    return _shown(visit, access.user(visit.context, visit.query.get("id", ""), UserAction.UPDATE))


@form
def describe(visit: Visit) -> HttpResponse:
    """Set name, email and type, unless somebody else did since the page was loaded."""
    asked = visit.request.POST
    granted = access.user(visit.context, asked.get("id", ""), UserAction.UPDATE)
    typed = {name: asked.get(name, "").strip() for name in ("name", "email", "type")}
    if asked.get("seen") != _mark(granted.target):
        return _shown(visit, granted, typed=typed, problem=_meanwhile(granted.target))
    try:
        if typed["type"] not in User.Type.values:
            raise InvalidArgument(f"type: one of {', '.join(User.Type.values)} is expected")
        users.rewrite(granted, name=typed["name"], email=typed["email"] or None, kind=typed["type"])
    except LakewardenError as error:
        return _shown(visit, granted, typed=typed, problem=error.message)
    return HttpResponseRedirect(reverse("console:users"))


@form
def delete(visit: Visit) -> HttpResponse:
    """Delete them if their id was typed."""
    asked = visit.request.POST
    granted = access.user(visit.context, asked.get("id", ""), UserAction.DELETE)
    if asked.get("typed", "").strip() != granted.target.id:
        return _shown(visit, granted, problem="This is not the id: nothing was deleted")
    user_removal.delete(granted)
    return HttpResponseRedirect(reverse("console:users"))


def _meanwhile(now: User) -> str:
    state = ", ".join([now.name, now.email or "no email", now.user_type])
    return f"Somebody changed the user after you opened this page ({state}), so what you typed was not saved yet"


def _mark(found: User) -> str:
    """What a form carries so that its sender does not overwrite what they have not seen."""
    return sha256("\n".join([found.name, found.email or "", found.user_type]).encode()).hexdigest()[:32]


def _shown(
    visit: Visit, granted: Granted[User], *, typed: dict[str, str] | None = None, problem: str | None = None
) -> HttpResponse:
    found = granted.target
    return visit.render(
        "user.html",
        section="users",
        found=found,
        mark=_mark(found),
        typed=typed or {"name": found.name, "email": found.email or "", "type": found.user_type},
        types=User.Type.values,
        problem=problem,
    )
