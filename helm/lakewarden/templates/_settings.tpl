{{/*
Settings as environment variables. `lakewarden.flatten` writes those of a tree into a dictionary:
(dict "tree" .Values.config "prefix" "LAKEWARDEN__" "into" $found)
*/}}
{{- define "lakewarden.flatten" -}}
{{- $ := . -}}
{{- range $key, $value := .tree -}}
{{- $name := printf "%s%s" $.prefix (upper $key) -}}
{{- if kindIs "invalid" $value -}}
{{- else if has $name (list "LAKEWARDEN__PIPELINE__SPARK" "LAKEWARDEN__MAINTENANCE__POLICY" "LAKEWARDEN__MAINTENANCE__WAREHOUSE_POLICIES") -}}
{{- $_ := set $.into $name (kindIs "string" $value | ternary $value (toJson $value)) -}}
{{- else if kindIs "map" $value -}}
{{- include "lakewarden.flatten" (dict "tree" $value "prefix" (printf "%s__" $name) "into" $.into) -}}
{{- else if kindIs "slice" $value -}}
{{- $_ := set $.into $name (join "," $value) -}}
{{- else if kindIs "string" $value -}}
{{- $_ := set $.into $name $value -}}
{{- else -}}
{{- /* as JSON, because Go writes large numbers with an exponent */ -}}
{{- $_ := set $.into $name (toJson $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lakewarden.variable" -}}
LAKEWARDEN__{{ . | upper | replace "." "__" }}
{{- end -}}

{{/*
The variables of a component: (dict "root" $ "component" "server"). Only the pipeline gets its settings, and it gets
no others than those that it reads.
*/}}
{{- define "lakewarden.env" -}}
{{- $values := .root.Values -}}
{{- $sections := list "DATABASE" "PIPELINE" "MAINTENANCE" "LOG" "METRICS" "TELEMETRY" -}}
{{- $isPipeline := eq .component "pipeline" -}}
{{- $found := dict -}}
{{- include "lakewarden.flatten" (dict "tree" $values.config "prefix" "LAKEWARDEN__" "into" $found) -}}
{{- if and $values.metrics.enabled (ne .component "migrations") -}}
{{- $_ := set $found (eq .component "worker" | ternary "LAKEWARDEN__METRICS__WORKER_PORT" "LAKEWARDEN__METRICS__PORT") (toJson $values.metrics.port) -}}
{{- $_ := set $found "LAKEWARDEN__METRICS__HOST" "0.0.0.0" -}}
{{- end -}}
{{- if $values.persistence.enabled -}}
{{- $_ := set $found "LAKEWARDEN__STORAGE__LOCAL_ROOTS" "/warehouses" -}}
{{- end -}}
{{- if $isPipeline -}}
{{- include "lakewarden.spark" (dict "root" .root "into" $found) -}}
{{- end -}}
{{- $lines := list -}}
{{- range $name, $value := $found -}}
{{- $section := index (splitList "__" $name) 1 -}}
{{- if ternary (has $section $sections) (not (has $section (list "PIPELINE" "MAINTENANCE"))) $isPipeline -}}
{{- $lines = append $lines (dict "name" $name "value" $value) -}}
{{- end -}}
{{- end -}}
{{- $refs := dict -}}
{{- range $setting, $_ := $values.secretValues -}}
{{- $_ := set $refs $setting (dict "name" (printf "%s%s" (include "lakewarden.fullname" $.root) (ternary "-migrations" "" (eq $.component "migrations"))) "key" (include "lakewarden.variable" $setting)) -}}
{{- end -}}
{{- range $setting, $ref := $values.secretRefs -}}
{{- $_ := set $refs $setting $ref -}}
{{- end -}}
{{- if $values.postgres.enabled -}}
{{- $name := printf "%s-postgres" (include "lakewarden.fullname" .root) -}}
{{- $_ := set $refs "database.url" (dict "name" $name "key" "url") -}}
{{- if not (or (hasKey $refs "secrets.keys") (dig "secrets" "keys_file" "" $values.config)) -}}
{{- $_ := set $refs "secrets.keys" (dict "name" $name "key" "keys") -}}
{{- end -}}
{{- end -}}
{{- range $setting, $ref := $refs -}}
{{- $section := upper (index (splitList "." $setting) 0) -}}
{{- if ternary (has $section $sections) (not (has $section (list "PIPELINE" "MAINTENANCE"))) $isPipeline -}}
{{- $lines = append $lines (dict "name" (include "lakewarden.variable" $setting) "valueFrom" (dict "secretKeyRef" (dict "name" $ref.name "key" $ref.key))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $lines -}}
{{- end -}}

{{/* Where the pipeline's driver and executors run: (dict "root" $ "into" $found) */}}
{{- define "lakewarden.spark" -}}
{{- $pipeline := .root.Values.pipeline -}}
{{- $name := printf "%s-pipeline" (include "lakewarden.fullname" .root) -}}
{{- $_ := set .into "LAKEWARDEN__PIPELINE__MASTER" (eq $pipeline.master "kubernetes" | ternary "k8s://https://kubernetes.default.svc" $pipeline.master) -}}
{{- if eq $pipeline.master "kubernetes" -}}
{{- $executors := $pipeline.executors -}}
{{- /* executors belong to the driver's pod, and go with it; Spark makes pods, and no other objects */ -}}
{{- $spark := dict
  "spark.kubernetes.namespace" .root.Release.Namespace
  "spark.kubernetes.container.image" (include "lakewarden.image" (dict "root" .root "image" .root.Values.sparkImage))
  "spark.kubernetes.container.image.pullPolicy" .root.Values.sparkImage.pullPolicy
  "spark.kubernetes.driver.pod.name" "$(POD_NAME)"
  "spark.kubernetes.driver.ownPersistentVolumeClaim" "false"
  "spark.kubernetes.driver.reusePersistentVolumeClaim" "false"
  "spark.kubernetes.driver.service.deleteOnTermination" "false"
  "spark.kubernetes.executor.disableConfigMap" "true"
  "spark.kubernetes.executor.podTemplateFile" "/etc/lakewarden/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.executor.instances" (toString $executors.instances)
  "spark.executor.cores" (toString $executors.cores)
  "spark.executor.memory" $executors.memory
  "spark.executor.memoryOverhead" $executors.memoryOverhead
  "spark.executor.failuresValidityInterval" "1h"
  "spark.driver.host" "$(POD_IP)"
  "spark.driver.bindAddress" "0.0.0.0"
  "spark.driver.port" "7078"
  "spark.driver.blockManager.port" "7079"
  "spark.blockManager.port" "7079"
  "spark.authenticate" "true"
  "spark.network.crypto.enabled" "true"
-}}
{{- with $executors.requestCores -}}
{{- $_ := set $spark "spark.kubernetes.executor.request.cores" . -}}
{{- end -}}
{{- $_ := set .into "LAKEWARDEN__PIPELINE__SPARK" (toJson (merge (dig "pipeline" "spark" (dict) .root.Values.config | deepCopy) $spark)) -}}
{{- end -}}
{{- end -}}
