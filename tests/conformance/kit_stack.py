"""`lakewarden dev` as the compatibility kit needs it, a program of its own: the kit puts tables at fixed places in /tmp.

Our catalog refuses locations outside a warehouse, so the warehouse is that directory.
"""

import sys
from pathlib import Path

import click

from standalone import dev, stack
from standalone.options import DevOptions

WAREHOUSE = Path("/tmp")


class KitStack(stack.DevelopmentStack):
    """The development stack with its one warehouse at `WAREHOUSE`."""

    def __init__(self, options: DevOptions) -> None:
        super().__init__(options)
        self._local_root = WAREHOUSE.parent


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), required=True)
@click.option("--ready-file", type=click.Path(path_type=Path), required=True)
def main(data_dir: Path, ready_file: Path) -> None:
    stack.WAREHOUSE_NAME = WAREHOUSE.name
    sys.exit(dev.run(DevOptions(data_dir=data_dir, ready_file=ready_file), make=KitStack))


if __name__ == "__main__":
    main()
