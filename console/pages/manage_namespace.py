"""What somebody may do with a namespace: protect it, and drop it, also with everything in it after a look at that."""

from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from catalog import access
from catalog.models import Namespace
from catalog.services import protection
from catalog.services.deletion import drop_namespace
from catalog.services.deletion.drop import DropOptions
from console.pages.browse import crumbs
from console.pages.manage import changed_meanwhile, mark
from console.visits import Visit, form, page
from lakewarden.authz.actions import NamespaceAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError


@page
def manage(visit: Visit, *, namespace_id: UUID) -> HttpResponse:
    return _shown(visit, access.namespace_of_id(visit.context, namespace_id, NamespaceAction.GET_METADATA))


@form
def protect(visit: Visit, *, namespace_id: UUID) -> HttpResponse:
    """Set or lift the protection, unless somebody did so since the page was loaded."""
    asked = visit.request.POST
    granted = access.namespace_of_id(visit.context, namespace_id, NamespaceAction.SET_PROTECTION)
    reason = asked.get("reason", "").strip()
    if changed := changed_meanwhile(protection.of(granted), asked.get("seen", "")):
        return _shown(visit, granted, reason=reason, problem=changed)
    protection.set_on_namespace(granted, protected=asked.get("protected") == "true", reason=reason or None)
    return HttpResponseRedirect(reverse("console:manage-namespace", args=[namespace_id]))


@form
def drop(visit: Visit, *, namespace_id: UUID) -> HttpResponse:
    """Drop it if its name was typed; with `recursive` everything in it, too."""
    asked = visit.request.POST
    granted = access.namespace_of_id(visit.context, namespace_id, NamespaceAction.DELETE)
    found, typed = granted.target, asked.get("name", "")
    if typed != found.path[-1]:
        return _shown(visit, granted, typed=typed, problem="This is not its name: nothing was dropped")
    try:
        drop_namespace.drop(granted, DropOptions(recursive=asked.get("recursive") == "true"))
    except LakewardenError as error:
        return _shown(visit, granted, typed=typed, problem=error.message)
    above = found.lineage[-2] if len(found.lineage) > 1 else None
    if above is not None:
        return HttpResponseRedirect(reverse("console:namespace", args=[above]))
    return HttpResponseRedirect(reverse("console:warehouse", args=[found.warehouse_id]))


def _shown(
    visit: Visit, granted: Granted[Namespace], *, typed: str = "", reason: str = "", problem: str | None = None
) -> HttpResponse:
    found, now = granted.target, protection.of(granted)
    may_drop = granted.allows(NamespaceAction.DELETE)
    return visit.render(
        "manage_namespace.html",
        section="warehouses",
        namespace=found,
        name=found.path[-1],
        crumbs=crumbs(found.warehouse, found),
        protection=now,
        mark=mark(now),
        may_protect=granted.allows(NamespaceAction.SET_PROTECTION),
        may_drop=may_drop,
        granters=visit.granters(granted, NamespaceAction.DELETE),
        inside=drop_namespace.preview(granted) if may_drop else None,
        kept_for_s=found.warehouse.deletion_profile.expiration_s,
        typed=typed,
        reason=reason,
        problem=problem,
    )
