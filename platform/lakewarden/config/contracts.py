"""Settings of data contracts: how large they may be, and the verifiers that they may name."""

from pathlib import Path

from pydantic import Field, SecretStr

from lakewarden.config.sections import HttpUri, Section


class VerifierConfig(Section):
    url: HttpUri = Field(description="Address to which proposed changes are posted.")
    secret: SecretStr = Field(
        min_length=16, description="Shared secret of at least 16 characters with which requests are signed."
    )
    timeout_s: float = Field(2, ge=0.1, le=10, description="Seconds after which a verifier counts as failed.")
    threads: int = Field(
        8, ge=1, le=64, description="Requests that a process sends to the verifier at a time; others wait."
    )
    ca_file: Path | None = Field(None, description="Certificates that are trusted instead of the usual ones.")
    allow_private_addresses: bool = Field(
        default=False, description="Allow hosts with addresses of private networks or of this machine."
    )


class ContractsConfig(Section):
    verifiers: dict[str, VerifierConfig] = Field(
        default_factory=dict,
        description="Verifiers by the name that contracts use (`LAKEWARDEN__CONTRACTS__VERIFIERS__<NAME>__URL`).",
    )
    max_in_warehouse: int = Field(
        1000, ge=1, le=100_000, description="Most data contracts of a warehouse, its namespaces, tables and views."
    )
    max_entries: int = Field(
        200, ge=1, le=10_000, description="Most columns, properties or fields in one list of a data contract."
    )
    max_checked_on_move: int = Field(
        200,
        ge=1,
        le=10_000,
        description="Most tables and views in a namespace that is moved in a warehouse with data contracts.",
    )
    max_verified_bytes: int = Field(
        1024 * 1024, ge=1024, le=64 * 1024 * 1024, description="Largest request to a verifier; a larger one is refused."
    )
