"""`python -m lakewarden.cli`."""

from lakewarden.cli.commands import main

if __name__ == "__main__":
    main(prog_name="lakewarden")
