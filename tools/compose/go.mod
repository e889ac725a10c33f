// Pins the schema of compose files, by which a test checks docker/compose.yaml; nothing of it is shipped.
module lakewarden/tools/compose

go 1.26.0

require github.com/compose-spec/compose-go/v2 v2.16.2
