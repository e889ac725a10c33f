"""Changes rights for ever, to be killed: `python -m tests.contracts.changing` forks a child for each line that it reads.

Each child's id is printed, and its end is awaited; the parent has loaded everything and opened nothing.
"""

import os
import random
import sys

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "lakewarden.settings"
django.setup()

from django.db import transaction  # noqa: E402 after setup

from lakewarden import backends  # noqa: E402 after setup
from lakewarden.authz.ledger import grants, members  # noqa: E402 after setup
from lakewarden.authz.model import Privilege  # noqa: E402 after setup
from lakewarden.authz.openfga import authorizer  # noqa: E402, F401 so that no child has to load it
from lakewarden.context import PrincipalId  # noqa: E402 after setup
from tests.contracts.world import (  # noqa: E402 after setup
    ADMIN,
    ALICE,
    ANALYSTS,
    BOB,
    EVERYONE,
    ORDERS,
    SALES,
    STAFF,
    give,
    take,
)


def change_for_ever() -> None:
    dice = random.Random()  # noqa: S311 no secret
    backends.authorizer()  # it follows the log from here on
    rights = [Privilege.SELECT, Privilege.WRITE, Privilege.MODIFY, Privilege.OWNERSHIP, Privilege.PASS_GRANTS]
    while True:
        with transaction.atomic():
            for _ in range(dice.randrange(1, 4)):
                somebody = dice.choice([ALICE, BOB, PrincipalId("oidc~a b"), STAFF, ANALYSTS])
                chain = dice.choice([SALES, ORDERS])
                if dice.random() < 0.1:
                    grants.forget_principal(somebody)
                elif dice.random() < 0.2:
                    grants.set_managed(SALES, managed=dice.random() < 0.5, set_by=ADMIN)
                elif dice.random() < 0.3:
                    members.add(EVERYONE, [somebody], project_id="p", added_by=ADMIN)
                elif dice.random() < 0.3:
                    members.remove(EVERYONE, [somebody])
                elif dice.random() < 0.6:
                    give(chain, somebody, *dice.sample(rights, k=2))
                else:
                    take(chain, somebody, *dice.sample(rights, k=3))


def main() -> None:
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            change_for_ever()
        print(child, flush=True)  # noqa: T201 read by the test
        os.waitpid(child, 0)
        print("gone", flush=True)  # noqa: T201 read by the test


if __name__ == "__main__":
    main()
