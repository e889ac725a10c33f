"""Places that engines can still reach, with what they received for an object that is there no more (ADR 0043)."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple, Self

from django.db import models
from django.db.models.functions import Now

from lakewarden.storage.places import around

_IN_PROGRESS: Final = timedelta(minutes=2)
"""A request that was decided right before an object went may receive its access only now."""


class LastAccess(NamedTuple):
    """How long what engines receive now can be used: `lasts` is in seconds, and 0 if they receive nothing.

    Whatever they received under earlier profiles of the warehouse's storage `ends` no later than then.
    """

    lasts: float
    ends: datetime | None = None

    @classmethod
    def of(cls, lasts: timedelta, ends: datetime | None) -> Self:
        return cls((lasts + _IN_PROGRESS).total_seconds() if lasts else 0, ends)

    def end(self, now: datetime) -> datetime | None:
        """When all of it has ended; None: engines have received nothing."""
        ends = [self.ends, now + timedelta(seconds=self.lasts) if self.lasts else None]
        return max((each for each in ends if each), default=None)

    def after(self, seconds: float) -> "LastAccess":
        """The same, if engines may still receive it for so long."""
        return self._replace(lasts=self.lasts + seconds) if self.lasts else self


class ReachableLocationQuerySet(models.QuerySet["ReachableLocation"]):
    def around(self, location: str) -> "ReachableLocation | None":
        """One that engines can still reach, and with it all of `location`."""
        return self.filter(location__in=around(location), until__gt=Now()).first()


class ReachableLocation(models.Model):
    """Of the whole server: another warehouse, perhaps of another project, may lie around the place meanwhile.

    `owner_id` is the object's id; of a staged creation, its uuid.
    """

    location = models.TextField(primary_key=True)
    owner_id = models.UUIDField()
    until = models.DateTimeField(db_index=True)

    objects = ReachableLocationQuerySet.as_manager()

    class Meta:
        db_table = "reachable_location"

    def __str__(self) -> str:
        return self.location


REACHABLE: Final = "select location, owner_id, until from reachable_location where until > now()"
"""SQL for other apps' queries, which read it as `({REACHABLE}) reach`."""
FORGET: Final = "delete from reachable_location where owner_id = any(%s::uuid[]) and location = any(%s)"


def keeping(places: str) -> str:
    """SQL for other apps' statements, which records `places`, a query that has each location once.

    Its columns are the location, its owner, and `lasts` and `ends` of LastAccess.
    """
    return f"""
        insert into reachable_location (location, owner_id, until)
        select place.location, place.owner, access.ends
        from ({places}) as place (location, owner, lasts, ends),
            lateral (select greatest(clock_timestamp() + make_interval(secs => place.lasts), place.ends)) as
                access (ends)
        where access.ends > clock_timestamp()
        on conflict (location) do update
        set owner_id = excluded.owner_id, until = greatest(reachable_location.until, excluded.until)
    """  # noqa: S608 text of our own
