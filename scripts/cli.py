"""The reference page of the command line, made from the commands themselves; `write_reference` writes it."""

import inspect
import re
from collections.abc import Iterator

import click

from lakewarden.cli.commands import main

HEAD = """# Command line

Every command has an option `--help`. Errors are printed on standard error; the exit code is then 1, or 2 if the command
was called with wrong options. All settings come from the environment: see [Configuration](configuration.md).
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_command(main, "lakewarden"))


def _command(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    if path != "lakewarden":
        yield f"\n## {path}\n"
    yield f"\n```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n"
    yield f"\n{_plain(inspect.cleandoc(command.help or ''))}\n"
    if rows := [row for option in command.params if (row := _option(option, context))]:
        yield "\n| option | meaning |\n|---|---|\n" + "".join(rows)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if not command.commands[name].hidden:
                yield from _command(command.commands[name], f"{path} {name}")


def _option(option: click.Parameter, context: click.Context) -> str | None:
    record = option.get_help_record(context)
    if record is None or isinstance(option, click.Argument):
        return None
    name, meaning = (text.replace("|", "\\|") for text in record)
    return f"| `{name}` | {_plain(' '.join(meaning.split()))} |\n"


def _plain(text: str) -> str:
    """What stands in angle brackets outside of code is no HTML element."""
    return re.sub(r"(`[^`]*`)|<", lambda found: found[1] or "&lt;", text)
