"""`lakewarden ingest`: sends changes to a gateway. It uses the client only, so it needs no database and no Django."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ingest.client.files.options import Login, Meaning
    from ingest.client.files.sending import Totals

INTERRUPTED = 130
_SHOWN_FAULTS = 20


@click.group()
def ingest() -> None:
    """Send changes of rows to the change-data gateway, which brings them into Iceberg tables."""


@ingest.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--table", metavar="NAME", help="Target, as `table` or `namespace.table`, for lines that name none.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["events", "rows", "debezium"]),
    default="events",
    show_default=True,
    help="What a line is: an event of the gateway, a plain row (it becomes an INSERT), or a message of Debezium.",
)
@click.option("--key", metavar="COLUMN", help="Column of the row's id; several are separated by commas.")
@click.option(
    "--source", metavar="NAME", help="Name of the sender, which the gateway knows [default: a new one for each file]."
)
@click.option("--url", metavar="URL", help="Address of the gateway, e.g. https://lake.example.com/lakehouse.")
@click.option("--warehouse", metavar="NAME", help="Warehouse, if not the gateway's default one.")
@click.option("--token-endpoint", metavar="URL", help="OAuth2 token endpoint of the identity provider.")
@click.option(
    "--client-id",
    metavar="ID",
    help="OAuth2 client; its secret is read from LAKEWARDEN_INGEST_CLIENT_SECRET. An access token in "
    "LAKEWARDEN_INGEST_TOKEN is used instead.",
)
@click.option("--scope", metavar="SCOPE", help="OAuth2 scope to request [default: catalog].")
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path(".lakewarden/ready.json"),
    show_default=True,
    help="Without --url: the file with addresses and credentials that `lakewarden dev` or `demo` wrote.",
)
@click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that keeps what was sent [default: FILE.ingest-state.json].",
)
@click.option("--restart", is_flag=True, help="Send the whole file again, under a new source.")
@click.option("--check", is_flag=True, help="Send nothing: only report lines that are wrong.")
@click.option("--flush", is_flag=True, help="Wait until everything is in Iceberg tables.")
@click.option("--skip-truncates", is_flag=True, help="Pass over Debezium's TRUNCATE messages instead of refusing them.")
@click.option("--window", type=click.IntRange(1, 256), default=8, show_default=True, help="Unacknowledged batches.")
@click.option(
    "--retry-for",
    type=click.IntRange(1, 86_400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Give up when nothing was acknowledged for so long.",
)
def send(
    *,
    file: Path,
    table: str | None,
    kind: str,
    key: str | None,
    source: str | None,
    state_file: Path | None,
    restart: bool,
    check: bool,
    flush: bool,
    skip_truncates: bool,
    window: int,
    retry_for: int,
    url: str | None,
    warehouse: str | None,
    token_endpoint: str | None,
    client_id: str | None,
    scope: str | None,
    ready_file: Path,
) -> None:
    """Send each line of FILE, one JSON object, as a change of a row. FILE may be gzipped; - is standard input.

    Run the same command again after Ctrl-C, a kill or an error: it goes on where it ended, because a state file beside
    FILE keeps what was acknowledged. Lines that were added to FILE in the meantime are sent, too. Standard input cannot
    be resumed.

    The gateway acknowledges what is durable. To also wait for the Iceberg tables, use --flush.
    """
    from ingest.client.files.options import Login, Meaning
    from lakewarden.errors import LakewardenError

    try:
        columns = [each.strip() for each in (key or "").split(",") if each.strip()]
        meaning = Meaning(kind, table, columns, skip_truncates)
        if check:
            _check(file, meaning)
            return
        login = Login(url, warehouse, token_endpoint, client_id, scope, ready_file)
        _send(file, meaning, login, source, state_file, restart=restart, flush=flush, window=window, give_up=retry_for)
    except LakewardenError as error:
        raise click.ClickException(f"{error.message[:1].upper()}{error.message[1:]}") from None
    except KeyboardInterrupt:
        click.echo("\nInterrupted. What was acknowledged is kept; the same command sends the rest.", err=True)
        sys.exit(INTERRUPTED)


def _check(file: Path, meaning: "Meaning") -> None:
    from ingest.client.files import formats, lines, sending

    if str(file) == "-":
        raise click.ClickException("--check needs a file: standard input could not be read again.")
    with lines.opened(file) as opened:
        count, wrong = sending.check(opened, meaning.reader(formats.base()), most=_SHOWN_FAULTS)
    for each in wrong:
        click.echo(each.message, err=True)
    if wrong:
        more = ", or more" if len(wrong) == _SHOWN_FAULTS else ""
        raise click.ClickException(f"{len(wrong)} lines are wrong{more}; nothing was sent.")
    click.echo(f"{count:,} events can be sent; nothing was sent.")


def _send(
    file: Path,
    meaning: "Meaning",
    login: "Login",
    source: str | None,
    state_file: Path | None,
    *,
    restart: bool,
    flush: bool,
    window: int,
    give_up: int,
) -> None:
    from ingest.client.client import IngestClient
    from ingest.client.files import formats, lines, options, sending
    from ingest.client.files import state as states
    from ingest.client.retries import Backoff

    target, is_stream = login.target(), str(file) == "-"
    kept_in, state = None, None
    name = source or options.new_source(Path("stdin") if is_stream else file)
    if not is_stream:
        kept_in = state_file or file.with_name(file.name + states.SUFFIX)
        address = f"{target.address} {target.warehouse or ''}".strip()
        with lines.opened(file):  # whether it can be read at all
            state = sending.load_state(
                kept_in, file=file, address=address, options=meaning.kept(), source=name, restart=restart
            )
        if source not in (None, state.source):
            raise click.ClickException(
                f"{file} was sent as source {state.source!r} before. Leave --source out to go on, or give --restart."
            )
        name = state.source
    reader = meaning.reader(formats.base(state.acked.sequence if state else -1))
    with _shown(None if is_stream else file.stat().st_size) as progress:
        job = sending.Sending(state=state, state_file=kept_in, progress=progress)
        client = IngestClient(
            target.address,
            source=name,
            warehouse=target.warehouse,
            token=target.token,
            window=window,
            backoff=Backoff(give_up_s=give_up),
            on_ack=job.acknowledged,
        )
        try:
            if is_stream:
                job.stream(client, lines.Source(sys.stdin.buffer, size=None), reader)
            else:
                with lines.opened(file) as opened:
                    job.file(client, opened, reader)
            result = client.flush() if flush else None
        finally:
            client.close()
    click.echo(job.totals.sentence(name))
    if result is not None and not result.success:
        raise click.ClickException(f"The flush failed: {result.error or 'no reason given'}")
    if result is not None:
        files = f" in {len(result.paths)} data files" if result.paths else ""  # whose names are not for everybody
        click.echo(
            f"Flushed: {result.events_flushed:,} events{files}, "
            f"{result.bytes_written:,} bytes, {result.duration_ms / 1000:.1f} s"
        )


@contextmanager
def _shown(size: int | None) -> Iterator[Callable[["Totals", int], None]]:
    """A bar on standard error if that is a terminal; without a size, the counts alone."""
    if not sys.stderr.isatty():
        yield lambda _totals, _consumed: None
        return
    if size is None:
        yield lambda totals, _consumed: click.echo(f"\r{totals.events:,} events", nl=False, err=True)
        click.echo(err=True)
        return
    with click.progressbar(length=max(size, 1), label="0 events", file=sys.stderr, width=30) as bar:

        def show(totals: "Totals", consumed: int) -> None:
            bar.label = f"{totals.events:,} events"
            bar.update(max(0, min(consumed, size) - bar.pos))

        yield show
