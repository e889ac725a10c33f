"""Fetches and builds the outside programs of all lanes, so that no lane waits for them: `make prefetch`."""

from tests.conformance.kit import runner
from tests.servers import (
    azurite,
    fake_gcs,
    go_programs,
    kafka,
    keycloak,
    kubernetes,
    minio,
    opa,
    openfga,
    trino,
    versitygw,
)

if __name__ == "__main__":
    runner.provide()
    keycloak.distribution()
    trino.distribution()
    kafka.jars()
    go_programs.provide(openfga.OPENFGA)
    go_programs.provide(opa.OPA)
    go_programs.provide(minio.MINIO)
    go_programs.provide(versitygw.VERSITYGW)
    kubernetes.build()
    azurite.provide()
    go_programs.provide(fake_gcs.FAKE_GCS)
