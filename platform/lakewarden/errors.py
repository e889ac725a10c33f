"""All errors that API users can see; `http.errors` renders them in the Iceberg error model.

LakewardenError
├── BadRequest 400                  malformed input: the caller must change the request
│   ├── ProjectIdMissing            the request names no project, and there is no default one
│   ├── QuotaExceeded               there are as many objects of the kind as the configuration allows
│   ├── ImmutableProperty           the property can be set once, and neither changed nor removed
│   ├── InvalidArgument             an argument breaks a rule of the Iceberg format (IllegalArgumentException)
│   └── ValidationFailed            well-formed, but contradicts itself or the stored state (ValidationException)
├── NotAuthorized 401               no valid credentials
├── Forbidden 403                   the caller sees the object, but may not do this to it
├── NotFound 404
│   ├── NoSuchProject, NoSuchWarehouse, NoSuchNamespace, NoSuchTable, NoSuchView
│   ├── NoSuchGenericTable, NoSuchUser, NoSuchRole, NoSuchTask, NoSuchTagDefinition, NoSuchColumn
│   └── NoSuchRoute
├── MethodNotAllowed 405
├── NotSupported 406                the API names it, this server does not do it
├── RequestTimedOut 408             the request did not come in time
├── Conflict 409
│   ├── AlreadyExists
│   ├── NamespaceNotEmpty
│   ├── WarehouseNotEmpty, ProjectNotEmpty
│   ├── WarehouseHasUnfinishedTasks files of what was dropped in it are still being removed
│   ├── TagInUse                an object has the tag: remove it there first
│   ├── Protected               it is protected from deletion: lift that first
│   ├── ContractViolated        a data contract does not allow the change
│   └── CommitFailed                a requirement does not hold: reload and try again
│       └── StaleUpdate             the update was built on an older snapshot: a fresh attempt may succeed
├── PayloadTooLarge 413
├── Unprocessable 422
├── TooManyRequests 429             the caller is to wait; carries Retry-After
├── HeadersTooLarge 431
├── CommitStateUnknown 500          the outcome could not be learned: never clean up after it
├── InternalError 500               a defect of Lakewarden
└── Unavailable 503                 nothing was applied; carries Retry-After
"""

from typing import ClassVar


class LakewardenError(Exception):
    """Base of every error that a caller may see. `message` is a sentence for people."""

    status: ClassVar[int] = 500
    wire_type: ClassVar[str] = "InternalServerError"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadRequest(LakewardenError):
    status = 400
    wire_type = "BadRequestException"


class ProjectIdMissing(BadRequest):
    wire_type = "ProjectIdMissingException"


class QuotaExceeded(BadRequest):
    """Not a conflict: engines take a 409 for `it exists already`, and go on."""

    wire_type = "QuotaExceededException"


class ImmutableProperty(BadRequest):
    wire_type = "ImmutablePropertyException"


class InvalidArgument(BadRequest):
    wire_type = "IllegalArgumentException"


class ValidationFailed(BadRequest):
    wire_type = "ValidationException"


class NotAuthorized(LakewardenError):
    status = 401
    wire_type = "NotAuthorizedException"


class Forbidden(LakewardenError):
    status = 403
    wire_type = "ForbiddenException"


class NotFound(LakewardenError):
    status = 404
    wire_type = "NotFoundException"


class NoSuchRoute(NotFound):
    wire_type = "NoSuchRouteException"


class NoSuchProject(NotFound):
    wire_type = "NoSuchProjectException"


class NoSuchWarehouse(NotFound):
    wire_type = "NoSuchWarehouseException"


class NoSuchNamespace(NotFound):
    wire_type = "NoSuchNamespaceException"


class NoSuchTable(NotFound):
    wire_type = "NoSuchTableException"


class NoSuchView(NotFound):
    wire_type = "NoSuchViewException"


class NoSuchGenericTable(NotFound):
    wire_type = "NoSuchGenericTableException"


class NoSuchUser(NotFound):
    wire_type = "NoSuchUserException"


class NoSuchRole(NotFound):
    wire_type = "NoSuchRoleException"


class NoSuchTask(NotFound):
    wire_type = "NoSuchTaskException"


class NoSuchTagDefinition(NotFound):
    wire_type = "NoSuchTagDefinitionException"


class NoSuchColumn(NotFound):
    wire_type = "NoSuchColumnException"


class MethodNotAllowed(LakewardenError):
    status = 405
    wire_type = "MethodNotAllowedException"


class NotSupported(LakewardenError):
    status = 406
    wire_type = "UnsupportedOperationException"


class RequestTimedOut(LakewardenError):
    status = 408
    wire_type = "RequestTimeoutException"


class Conflict(LakewardenError):
    status = 409
    wire_type = "ConflictException"


class AlreadyExists(Conflict):
    wire_type = "AlreadyExistsException"


class NamespaceNotEmpty(Conflict):
    wire_type = "NamespaceNotEmptyException"


class WarehouseNotEmpty(Conflict):
    wire_type = "WarehouseNotEmptyException"


class WarehouseHasUnfinishedTasks(Conflict):
    wire_type = "WarehouseHasUnfinishedTasksException"


class ProjectNotEmpty(Conflict):
    wire_type = "ProjectNotEmptyException"


class TagInUse(Conflict):
    wire_type = "TagInUseException"


class Protected(Conflict):
    wire_type = "ProtectedException"


class ContractViolated(Conflict):
    wire_type = "ContractViolatedException"


class CommitFailed(Conflict):
    wire_type = "CommitFailedException"


class StaleUpdate(CommitFailed):
    """A snapshot's sequence number or first row id is behind the table's: only the client can rebuild it."""


class PayloadTooLarge(LakewardenError):
    status = 413
    wire_type = "PayloadTooLargeException"


class Unprocessable(LakewardenError):
    status = 422
    wire_type = "UnprocessableEntityException"


class TooManyRequests(LakewardenError):
    status = 429
    wire_type = "TooManyRequestsException"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class HeadersTooLarge(LakewardenError):
    status = 431
    wire_type = "HeadersTooLargeException"


class CommitStateUnknown(LakewardenError):
    wire_type = "CommitStateUnknownException"


class InternalError(LakewardenError):
    pass


class Unavailable(LakewardenError):
    status = 503
    wire_type = "ServiceUnavailableException"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
