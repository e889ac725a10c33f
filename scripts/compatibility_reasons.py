"""Why the management API differs, where it does, from the one that it is a drop-in for; for `scripts.compatibility`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Deliberate:
    """A difference in behaviour, which no document shows. `switch` is how to get the other behaviour."""

    ours: str
    why: str
    switch: str = "none"


HEAD = """# Compatibility

The management API is a drop-in for Lakekeeper's: programs that were written for it work without a change, except for
what this page lists. It compares the two OpenAPI documents, operation by operation. The page is generated:
`scripts/compatibility.py` keeps the operations, parameters, statuses and members of the other document, and no sentence
of it.

The other document has {total} operations. All paths below begin with `/management/v1`.

| state | operations |
|---|---|
{counts}

*Same*: what a client of the other server sends is accepted, and every member that it reads is there. *Superset*: there
are further parameters or members, which are listed below; a client must ignore members that it does not know, as it
must with each new release of the other server. *Different on purpose* and *absent*: see the reasons below.

## Differences in behaviour

| here | why | switch |
|---|---|---|
{deliberate}

## Operations that differ

Members of a request or an answer are written as `request: member` and `answer: member`.

| operation | what differs |
|---|---|
{differing}

## All other operations

| operation | state | notes |
|---|---|---|
{others}
"""

DELIBERATE = (
    Deliberate(
        "The owner of a role decides who is in it, and does not hold its rights.",
        "Whoever manages the members of a group need not see what the group sees. They can make themselves a member, "
        "which the audit shows.",
        "make the owner a member",
    ),
    Deliberate(
        "An administrator of the server may rename and delete projects.",
        "They can grant themselves the right at any time; this way the audit shows one change instead of three.",
    ),
    Deliberate(
        "A namespace has at most 16 levels, not 5.",
        "Catalogs that are moved here may have more than 5, and nothing becomes slow before 16.",
    ),
    Deliberate(
        "Roles cannot hold privileges on the server.",
        "A role belongs to a project, so whoever manages its members there would decide who administers the server.",
        "grant the privilege to the users",
    ),
    Deliberate(
        "There is a privilege `write` between `select` and `modify`; lists of assignments show it as a further type.",
        "An engine that writes data need not be able to drop and alter tables.",
        "grant `modify`",
    ),
    Deliberate(
        "`…/actions` lists further actions, such as `force_drop` and `read_audit`.",
        "They are rights that the other server does not tell apart. `/permissions/…/access` has none of them.",
    ),
    Deliberate(
        "Finished tasks are removed once a day: a `cleanup-period` of more than a day is refused.",
        "How long they are kept decides what is found; `retention-period` is kept in whole days, rounded up.",
    ),
    Deliberate(
        "A plain drop with `recursive=true` in a warehouse with soft deletion deletes softly, too.",
        "What is dropped together can be restored like what is dropped alone.",
        "`force=true` deletes permanently",
    ),
    Deliberate(
        "In the storage layout `default`, each namespace has a folder, in which its tables are.",
        "Who may write in a namespace may choose locations in its folder, and in no other namespace's.",
        "the layout `tabular-only`",
    ),
    Deliberate(
        "A change of the storage profile without a credential keeps the present one.",
        "A new role or endpoint does not need the keys again, which whoever changes it may not have.",
        "`…/storage-credential` without a credential removes it",
    ),
    Deliberate(
        "The locations of warehouses do not overlap in the whole server, and a bucket is the same place by whichever "
        "endpoint it is reached.",
        "Whoever owns a warehouse could otherwise reach the files of another project's.",
    ),
)

_OTHER_CLOUDS = "OneLake and STACKIT have no types of their own; a bucket of STACKIT is of the type `s3`"
_ONE_VALUE = "the JSON of a Google key is described as one value, and accepted as an object or a text"
_ONE_EDITION = "there is one edition with one licence, which names nobody and does not expire"

DIFFERENT = {
    # what no client can tell
    ("* /management/v1/warehouse/*/grants*", "parameter: header x-project-id"): "",
    ("* /management/v1/warehouse/*tags*", "parameter: header x-project-id"): "",
    ("*", "answer: checks.error.stack"): "",
    ("*", "request: checks.operation.*.action is object|string, not object"): "",
    ("*", "request: operation.*.action is object|string, not string"): "",
    ("POST */action/batch-check", "request: checks.operation.*.action.*"): "",  # accepted: `additionalProperties`
    ("GET */info", "answer: lakekeeper-enterprise-*"): _ONE_EDITION,
    ("GET */info", "answer: *commit-sha"): "the version identifies the commit",
    ("GET */info", "answer: license-status.*"): _ONE_EDITION,
    **{
        ("*", f"*storage-profile.{member}*"): _OTHER_CLOUDS
        for member in (
            "credentials-group-urn",
            "directory-rel-path",
            "endpoint-mode",
            "lakehouse-id",
            "top-level-folder",
            "workspace-id",
        )
    },
    ("*", "*storage-credential.key*"): _ONE_VALUE,
    ("*", "*queue-config.cleanup-period"): "",  # accepted, and of no effect: it is always a day
    ("*", "*queue-config.retention-period"): "",  # accepted and answered: `queue-config` has no fixed members
    ("*/task/*", "answer: *warehouse-id may be missing"): "tasks of a project have none, and share the schema",
    (
        "GET */tag-definition",
        "answer: tag-definitions.allowed-values",
    ): "",  # only of a single definition, there as here
}
"""By patterns of the operation and of the difference; an empty reason: no client can tell."""

ABSENT: dict[tuple[str, str], str] = {}
"""By patterns of the operation."""
