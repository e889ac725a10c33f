"""`lakewarden events`: how far sinks are, delivering again, and what sinks refused."""

from datetime import datetime

import click

from lakewarden.cli.setup import load_django, require_current

_SINK = click.option("--sink", required=True, metavar="NAME", help="Name of the sink in the settings.")
_IDS = click.argument("ids", nargs=-1, type=click.IntRange(1), metavar="[ID]...")


@click.group("events")
def events() -> None:
    """Look at the delivery of events to sinks, and deliver events again."""


@events.command("status")
def status() -> None:
    """Print for each sink how many events wait, since when, and why."""
    _load()
    from lakewarden.events.commands import status_lines

    for line in status_lines():
        click.echo(line)


@events.command("replay")
@_SINK
@click.option(
    "--since",
    required=True,
    type=click.DateTime(("%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d")),
    help="Time from which events are delivered again; UTC if it has no offset.",
)
@click.option("--dry-run", is_flag=True, help="Only count them.")
def replay(*, sink: str, since: datetime, dry_run: bool) -> None:
    """Deliver the events of the log since a time again. Receivers recognize them by their `id`."""
    _load()
    from lakewarden.errors import NotFound
    from lakewarden.events.commands import replayed

    try:
        click.echo(replayed(sink, since, dry_run=dry_run))
    except NotFound as error:
        raise click.ClickException(str(error)) from None


@events.group("dead-letters")
def dead_letters() -> None:
    """Look at events that a sink refused, send them again, or drop them."""


@dead_letters.command("list")
@click.option("--sink", metavar="NAME", help="Only those of this sink.")
@click.option("--after", type=click.IntRange(0), default=0, metavar="ID", help="Only those after this one.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Most that are printed.")
def list_letters(*, sink: str | None, after: int, limit: int) -> None:
    """Print a line for each: its id, sink, event, attempts, times and the last reason."""
    _load()
    from lakewarden.events.commands import letter_lines

    for line in letter_lines(sink=sink, after=after, limit=limit):
        click.echo(line)


@dead_letters.command("show")
@click.argument("identifier", type=click.IntRange(1), metavar="ID")
def show_letter(*, identifier: int) -> None:
    """Print the event itself, as JSON."""
    _load()
    from lakewarden.errors import NotFound
    from lakewarden.events.commands import shown_letter

    try:
        click.echo(shown_letter(identifier))
    except NotFound as error:
        raise click.ClickException(str(error)) from None


@dead_letters.command("send")
@_SINK
@_IDS
def send_letters(*, sink: str, ids: tuple[int, ...]) -> None:
    """Send them once more: those with the ids that are given, or all of the sink."""
    _load()
    from lakewarden.errors import NotFound
    from lakewarden.events.commands import sent_again

    try:
        click.echo(sent_again(sink, ids))
    except NotFound as error:
        raise click.ClickException(str(error)) from None


@dead_letters.command("drop")
@_SINK
@_IDS
@click.option("--all", "is_all", is_flag=True, help="Drop all of the sink.")
def drop_letters(*, sink: str, ids: tuple[int, ...], is_all: bool) -> None:
    """Delete them: those with the ids that are given, or all of the sink with --all."""
    if bool(ids) == is_all:
        raise click.UsageError("Give the ids of the events, or --all")
    _load()
    from lakewarden.errors import NotFound
    from lakewarden.events.commands import dropped

    try:
        click.echo(dropped(sink, ids))
    except NotFound as error:
        raise click.ClickException(str(error)) from None


def _load() -> None:
    load_django()
    require_current()
