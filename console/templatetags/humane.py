"""Filters that write figures as people read them."""

from datetime import datetime, timedelta
from typing import Final

from django import template
from django.utils import timezone
from django.utils.timesince import timesince

_NOW: Final = timedelta(minutes=1)

register = template.Library()


@register.filter
def count(number: int) -> str:
    """A whole number with separators: `1,234,567`."""
    return f"{number:,}"


@register.filter
def age(at: datetime) -> str:
    """How long ago a time was, in one unit: `3 weeks ago`; a time to come is not hidden: `in 2 hours`."""
    now = timezone.now()
    if abs(now - at) < _NOW:
        return "just now"
    if at > now:
        return f"in {timesince(now, at, depth=1)}"
    return f"{timesince(at, now, depth=1)} ago"


@register.filter
def duration(seconds: int) -> str:
    """A time span in its two largest units: `7 days`, `1 hour, 30 minutes`."""
    start = datetime(2000, 1, 1)  # noqa: DTZ001 only the difference counts
    if seconds < _NOW.seconds:
        return f"{seconds} seconds"
    return timesince(start, start + timedelta(seconds=seconds), depth=2).replace("\xa0", " ")
