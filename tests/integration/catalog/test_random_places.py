"""Random creations, stagings, moves, registrations, drops and purges by several principals, compared with a model: no
file that an object of the model owns ever disappears, no two objects overlap, nothing of a purged one remains.
`LAKEWARDEN_RANDOM_PLACES` in the environment sets the number of walks of 30 steps each (three unless told).
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.access import namespace_chain
from catalog.models import Deletion, Namespace
from catalog.services.deletion.expire import expire_deletion
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.tasks.purge import purge_location
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import local
from tests.integration.catalog.staged import commit_staged
from tests.servers.asgi_client import Answer

WALKS = int(os.environ.get("LAKEWARDEN_RANDOM_PLACES", "3"))
STEPS = 30
PICK = st.integers(0, 10**6)
SOFT = {"type": "soft", "expiration-seconds": 3600}


@dataclass
class Thing:
    """`state`: staged, live, soft (dropped, can be restored), left (files without an object) or going (to be purged)."""

    kind: str
    name: str
    within: tuple[str, ...]
    by: str
    places: list[str]
    state: str = "live"
    answer: Any = None
    id: str = ""
    purge_ends_it: bool = True
    files: set[Path] = field(default_factory=set)


class Places(RuleBasedStateMachine):
    lake: ClassVar[Lake]
    base: ClassVar[str]
    warehouse: ClassVar[Warehouse]
    counts: ClassVar[Counter[str]] = Counter()
    walk: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).walk += 1
        self.number = 0
        self.things: list[Thing] = []
        self.callers = {name: self.lake.as_user(name) for name in ("engine", "alice", "bob")}
        self.spaces = {name: (f"{name}{self.walk}",) for name in self.callers}
        for name, path in self.spaces.items():
            assert self.lake.create_namespace(*path).status == 200
            namespace = Namespace.objects.select_related("warehouse__project").get(path=list(path))
            ledger.give(namespace_chain(namespace), [(PrincipalId(f"oidc~{name}"), Privilege.CREATE)], granted_by=ADMIN)
        self.free: list[tuple[str, ...]] = [*self.spaces.values()]
        projects.bump_epoch(self.warehouse.project_id)

    # what the rules have in common

    def _count(self, step: str, answer: Answer) -> bool:
        """Whether it was done; nothing may be answered but success and refusal."""
        assert answer.status in {200, 204, 400, 403, 404, 409, 503}, answer.body
        done = answer.status in {200, 204}
        self.counts[f"{step} {'done' if done else 'refused'}"] += 1
        return done

    def _next(self) -> str:
        self.number += 1
        return f"t{self.walk}-{self.number}"

    def _space(self, pick: int, caller: str) -> tuple[str, ...]:
        """Mostly one's own; the engine may create in all."""
        own = [path for path in self.free if path[0] == self.spaces[caller][0]]
        return own[pick % len(own)] if caller != "engine" else self.free[pick % len(self.free)]

    def _place(self, pick: int) -> str | None:
        """None, a free place, or one that has to do with somebody's."""
        known = [place for thing in self.things for place in thing.places]
        known += [self._folder(path) for path in self.free]
        if pick % 3 == 0 or not known:
            return None
        if pick % 3 == 1:
            return f"{self.base}/free/{pick % 40}/{pick % 7}"
        place = known[pick // 3 % len(known)]
        return [place, f"{place}/data", f"{place}/deep/er", place.rpartition("/")[0], f"{place}-x"][pick // 7 % 5]

    def _folder(self, path: tuple[str, ...]) -> str:
        return str(self.lake.client.get(self.lake.namespace(path)).json()["properties"]["location"])

    def _some(self, pick: int, *states: str) -> Thing | None:
        found = [thing for thing in self.things if thing.state in states]
        return found[pick % len(found)] if found else None

    def _write(self, thing: Thing) -> None:
        """As an engine, in its newest place."""
        file = local(thing.places[-1]) / "data" / f"{self._next()}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"rows")
        self._look(thing)

    @staticmethod
    def _look(thing: Thing) -> None:
        """Learn which files it has by now; those that it has dropped itself are not its own any more."""
        thing.files |= {file for place in thing.places for file in local(place).rglob("*") if file.is_file()}

    def _path(self, thing: Thing) -> str:
        kind = "tables" if thing.kind == "table" else "views"
        return self.lake.namespace(thing.within, kind, thing.name)

    def _made(self, kind: str, name: str, within: tuple[str, ...], by: str, told: Any) -> Thing:
        thing = Thing(kind, name, within, by, [told["metadata"]["location"]], answer=told)
        self.things.append(thing)
        self._write(thing)
        return thing

    # what they do

    @rule(pick=PICK, caller=st.sampled_from(["engine", "alice", "bob"]), where=PICK, view=st.booleans())
    def create(self, *, pick: int, caller: str, where: int, view: bool) -> None:
        lake, name, within, place = self.callers[caller], self._next(), self._space(pick, caller), self._place(where)
        more = {} if place is None else {"location": place}
        make = lake.create_view if view else lake.create_table
        answer = make(name, within=within, **more)
        if self._count("create", answer):
            self._made("view" if view else "table", name, within, caller, answer.json())

    @rule(pick=PICK, caller=st.sampled_from(["engine", "alice", "bob"]), where=PICK)
    def create_namespace(self, *, pick: int, caller: str, where: int) -> None:
        within, place = self._space(pick, caller), self._place(where)
        if len(within) > 3:
            return
        path = (*within, self._next())
        answer = self.callers[caller].create_namespace(*path, properties={} if place is None else {"location": place})
        if self._count("create namespace", answer):
            self.free.append(path)

    @rule(pick=PICK, caller=st.sampled_from(["engine", "alice", "bob"]), where=PICK)
    def stage(self, *, pick: int, caller: str, where: int) -> None:
        name, within, place = self._next(), self._space(pick, caller), self._place(where)
        more = {} if place is None else {"location": place}
        answer = self.callers[caller].create_table(name, within=within, stage_create=True, **more)
        if self._count("stage", answer):
            self._made("table", name, within, caller, answer.json()).state = "staged"

    @rule(pick=PICK, caller=st.sampled_from(["engine", "alice", "bob"]), where=PICK, own=st.booleans())
    def commit_a_staged_one(self, *, pick: int, caller: str, where: int, own: bool) -> None:
        staged = self._some(pick, "staged")
        if staged is None:
            return
        caller = staged.by if own else caller
        within = staged.within if own else self._space(pick, caller)
        told = json.loads(json.dumps(staged.answer))
        if not own and (place := self._place(where)):
            told["metadata"]["location"] = place
        answer = commit_staged(self.callers[caller], staged.name, told, within=within)
        if not self._count("commit staged", answer):
            return
        if answer.json()["metadata"]["location"] in staged.places:
            assert (caller, within) == (staged.by, staged.within)
            staged.state, staged.answer = "live", answer.json()
            self._look(staged)
        else:
            self._made("table", staged.name, within, caller, answer.json())

    @rule(pick=PICK, where=PICK, caller=st.sampled_from(["engine", "alice", "bob"]))
    def move(self, *, pick: int, where: int, caller: str) -> None:
        thing, place = self._some(pick, "live"), self._place(where)
        if thing is None or place is None:
            return
        # only who may clear the whole warehouse may move a table to where files lie that nobody knows
        update = {"action": "set-location", "location": place}
        answer = self.callers[caller].client.post(self._path(thing), {"requirements": [], "updates": [update]})
        if self._count("move", answer) and place not in thing.places:
            thing.places.append(place)
        if answer.status == 200:
            thing.answer = answer.json()
            thing.places.sort(key=place.__eq__)
            self._write(thing)

    @rule(pick=PICK, caller=st.sampled_from(["engine", "alice", "bob"]), where=PICK)
    def register(self, *, pick: int, caller: str, where: int) -> None:
        thing = self._some(pick, "left", "going", "live", "soft", "staged")
        if thing is None:
            return
        lake, within, name = self.callers[caller], self._space(where, caller), self._next()
        route = lake.namespace(within, "register" if thing.kind == "table" else "register-view")
        file = thing.answer["metadata-location"] if "metadata-location" in thing.answer else thing.places[0] + "/m.json"
        answer = lake.client.post(route, {"name": name, "metadata-location": file})
        if self._count("register", answer):
            assert thing.state in {"left", "going"}
            assert caller == "engine" or within == thing.within
            thing.name, thing.within, thing.state = name, within, "live"

    @rule(pick=PICK, purge=st.sampled_from(["true", "false", None]), force=st.booleans())
    def drop(self, *, pick: int, purge: str | None, force: bool) -> None:
        thing = self._some(pick, "live")
        if thing is None:
            return
        query = {} if purge is None else {"purgeRequested": purge}
        lake = self.callers[thing.by]  # its owner, who may also force
        path = self._path(thing) + "?" + "&".join([f"{key}={value}" for key, value in query.items()])
        answer = lake.client.delete(path + ("&force=true" if force else ""))
        if self._count("drop", answer):
            is_soft = not force and bool(Warehouse.objects.get().deletion_profile.expiration_s)
            thing.purge_ends_it = purge != "false"
            thing.state = "soft" if is_soft else "going" if thing.purge_ends_it else "left"

    @rule(pick=PICK)
    def unregister(self, *, pick: int) -> None:
        thing = self._some(pick, "live")
        if thing is not None and thing.kind == "table":
            lake = self.callers[thing.by]
            if self._count("unregister", lake.client.post(self._path(thing) + "/unregister")):
                thing.state = "left"

    @rule(pick=PICK, to=PICK)
    def rename(self, *, pick: int, to: int) -> None:
        thing = self._some(pick, "live")
        if thing is None:
            return
        within, name = self.free[to % len(self.free)], self._next()
        body = {
            "source": {"namespace": list(thing.within), "name": thing.name},
            "destination": {"namespace": list(within), "name": name},
        }
        route = self.lake.path("tables" if thing.kind == "table" else "views", "rename")
        if self._count("rename", self.lake.client.post(route, body)):
            thing.within, thing.name = within, name

    @rule(soft=st.booleans())
    def change_profile(self, *, soft: bool) -> None:
        Warehouse.objects.update(delete_profile=SOFT if soft else {"type": "hard"})

    @rule(pick=PICK)
    def undrop(self, *, pick: int) -> None:
        thing = self._some(pick, "soft")
        if thing is None:
            return
        # the newest of the name: names are never used twice here
        identifier = Deletion.objects.get(path=[*thing.within, thing.name]).object_id
        body = {"targets": [{"type": thing.kind, "id": str(identifier)}]}
        route = f"/management/v1/warehouse/{self.lake.warehouse_id}/deleted-tabulars/undrop"
        if self._count("undrop", self.lake.client.post(route, body)):
            thing.state = "live"

    @rule()
    def let_deletions_expire(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("update deletion set expires_at = now() - interval '1 second'")
        self._run("expire_deletion", expire_deletion)
        for thing in self.things:
            if thing.state == "soft":
                thing.state = "going" if thing.purge_ends_it else "left"

    @rule()
    def run_purges(self) -> None:
        self._run("purge_location", purge_location)
        for thing in self.things:
            if thing.state == "going":
                remaining = [file for place in thing.places for file in local(place).rglob("*") if file.is_file()]
                foreign = {file for other in self.things if other is not thing for file in other.files}
                assert set(remaining) <= foreign, thing
                thing.state = "purged"
        self.things = [thing for thing in self.things if thing.state != "purged"]

    def _run(self, name: str, task: Any) -> None:
        for job in ProcrastinateJob.objects.filter(task_name=name, status="todo"):
            task(**job.args)
            ProcrastinateJob.objects.filter(id=job.id)._raw_delete("default")
            self.counts[f"{name} done"] += 1

    # what always holds

    @invariant()
    def no_file_of_an_object_disappears(self) -> None:
        for thing in self.things:
            missing = [file for file in thing.files if not file.exists()]
            assert not missing, (thing, missing)

    @invariant()
    def no_two_objects_overlap(self) -> None:
        placed = sorted((place, number) for number, thing in enumerate(self.things) for place in thing.places)
        around: list[tuple[str, int]] = []
        for place, number in placed:
            around = [each for each in around if f"{place}/".startswith(f"{each[0]}/")]
            assert all(other == number for _, other in around), (place, [self.things[each] for _, each in around])
            around.append((place, number))

    def teardown(self) -> None:
        """The next walk begins without the objects of this one; its files stay, and belong to no object."""
        Warehouse.objects.update(delete_profile={"type": "hard"})


@pytest.fixture
def machine(lake: Lake, warehouse: Warehouse) -> Iterator[type[Places]]:
    Places.lake, Places.base, Places.warehouse = lake, warehouse.location, warehouse
    yield Places
    print(dict(sorted(Places.counts.items())))  # noqa: T201 what a long run reports


def test_random_walks_keep_every_file_with_its_owner(machine: type[Places]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=WALKS,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert machine.counts["create done"] > 0
    # which steps are refused in a few walks is chance
    assert any(name.endswith(" refused") for name in machine.counts), machine.counts
