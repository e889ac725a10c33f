"""Fetches and builds the outside programs of all lanes, so that no lane waits for them: `make prefetch`."""

from standalone import go_programs
from standalone.s3 import programs
from tests.conformance.kit import runner
from tests.servers import (
    axe,
    azurite,
    chromium,
    debian,
    fake_gcs,
    helm,
    kafka,
    keycloak,
    kubernetes,
    nats,
    opa,
    openfga,
    trino,
)

if __name__ == "__main__":
    runner.provide()
    keycloak.distribution()
    trino.distribution()
    kafka.jars()
    go_programs.provide(openfga.OPENFGA)
    go_programs.provide(opa.OPA)
    go_programs.provide(programs.MINIO.go)
    go_programs.provide(programs.VERSITYGW.go)
    go_programs.provide(nats.NATS)
    kubernetes.build()
    axe.provide()
    chromium.program()
    debian.program("prometheus", package="prometheus")
    go_programs.provide(helm.HELM)
    azurite.provide()
    go_programs.provide(fake_gcs.FAKE_GCS)
