{{/* Values that contradict each other, one sentence each; templates/secret.yaml includes it first. */}}
{{- define "lakewarden.validate" -}}
{{- $wrong := list -}}
{{- $v := .Values -}}
{{- $secrets := concat (keys ($v.secretRefs | default dict)) (keys ($v.secretValues | default dict)) -}}
{{- $threads := dig "server" "threads" 16 $v.config | int -}}
{{- $processes := dig "server" "processes" 1 $v.config | int -}}
{{- $replicas := ternary $v.server.autoscaling.maxReplicas $v.server.replicas $v.server.autoscaling.enabled | int -}}

{{- range $setting, $_ := $v.secretRefs -}}
{{- if hasKey ($v.secretValues | default dict) $setting -}}
{{- $wrong = append $wrong (printf "%s is in secretRefs and in secretValues: remove one of them" $setting) -}}
{{- end -}}
{{- end -}}
{{- if and $v.postgres.enabled (has "database.url" $secrets) -}}
{{- $wrong = append $wrong "postgres.enabled starts a database for trials, but database.url names another one: remove one of them" -}}
{{- else if not (or $v.postgres.enabled (has "database.url" $secrets)) -}}
{{- $wrong = append $wrong "there is no database: set secretRefs.\"database.url\" to a Secret with its address, or postgres.enabled for a trial" -}}
{{- end -}}
{{- if and $v.postgres.enabled (eq $v.migrations.mode "job") -}}
{{- $wrong = append $wrong "migrations.mode is job, which runs before postgres.enabled has started its database: set migrations.mode to init" -}}
{{- end -}}
{{- if not (or $v.config.openid (dig "kubernetes" "enabled" false $v.config)) -}}
{{- $wrong = append $wrong "nobody could sign in: set config.openid.oidc.issuer, or config.kubernetes.enabled for service accounts" -}}
{{- end -}}
{{- if and (dig "kubernetes" "enabled" false $v.config) (not $v.rbac.create) (eq (dig "kubernetes" "method" "token-review" $v.config) "token-review") (not $v.serviceAccount.name) -}}
{{- $wrong = append $wrong "config.kubernetes.enabled needs a service account that may review tokens: set rbac.create, or name in serviceAccount.name one that is bound to system:auth-delegator" -}}
{{- end -}}
{{- if and (eq (dig "authorization" "backend" "database" $v.config) "openfga") (not (dig "openfga" "api_url" "" $v.config)) -}}
{{- $wrong = append $wrong "config.authorization.backend is openfga, but config.openfga.api_url is missing" -}}
{{- end -}}
{{- if and (eq (dig "secrets" "backend" "database" $v.config) "vault") (not (dig "secrets" "vault" "url" "" $v.config)) -}}
{{- $wrong = append $wrong "config.secrets.backend is vault, but config.secrets.vault.url is missing" -}}
{{- end -}}
{{- if and $v.server.autoscaling.enabled (gt (int $v.server.autoscaling.minReplicas) (int $v.server.autoscaling.maxReplicas)) -}}
{{- $wrong = append $wrong (printf "server.autoscaling.minReplicas (%d) is more than maxReplicas (%d)" (int $v.server.autoscaling.minReplicas) (int $v.server.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- if and (gt $processes 1) (lt $threads (mul 4 $processes | int)) -}}
{{- $wrong = append $wrong (printf "config.server.processes is %d and threads is %d: each process needs 4 threads" $processes $threads) -}}
{{- end -}}
{{- if $v.databaseConnections -}}
{{- $tasks := dig "worker" "tasks_at_once" 4 $v.config | int -}}
{{- /* one replica more, as it starts during a rolling upgrade before another one stops */ -}}
{{- $servers := mul (add $replicas 1) (add $threads (mul 8 $processes)) -}}
{{- $workers := ternary (mul (add $v.worker.replicas 1) (add (mul 2 $tasks) 4)) 0 $v.worker.enabled -}}
{{- $pipelines := ternary (mul 4 $v.pipeline.replicas) 0 $v.pipeline.enabled -}}
{{- $needed := add $servers $workers $pipelines | int -}}
{{- if gt $needed (int $v.databaseConnections) -}}
{{- $wrong = append $wrong (printf "databaseConnections is %d, but %d are needed during an upgrade (%d servers of %d threads and %d processes: %d; workers: %d; pipelines: %d): lower replicas or config.server.threads, or allow more" (int $v.databaseConnections) $needed $replicas $threads $processes (int $servers) (int $workers) (int $pipelines)) -}}
{{- end -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) -}}
{{- $wrong = append $wrong "ingress.enabled needs at least one name in ingress.hosts" -}}
{{- end -}}
{{- if and $v.gateway.enabled (not $v.gateway.parentRefs) -}}
{{- $wrong = append $wrong "gateway.enabled needs at least one Gateway in gateway.parentRefs" -}}
{{- end -}}
{{- if and (dig "storage" "local_roots" "" $v.config) $v.persistence.enabled -}}
{{- $wrong = append $wrong "config.storage.local_roots is set by persistence.enabled: remove it" -}}
{{- else if and (dig "storage" "local_roots" "" $v.config) (not $v.server.volumes) -}}
{{- $wrong = append $wrong "config.storage.local_roots needs a volume that all pods share: set persistence.enabled, or server.volumes and worker.volumes" -}}
{{- end -}}
{{- if and (or $v.metrics.serviceMonitor.enabled $v.metrics.prometheusRule.enabled) (not $v.metrics.enabled) -}}
{{- $wrong = append $wrong "metrics.serviceMonitor and metrics.prometheusRule need metrics.enabled" -}}
{{- end -}}
{{- if eq (int $v.metrics.port) (dig "server" "port" 8181 $v.config | int) -}}
{{- $wrong = append $wrong (printf "metrics.port and config.server.port are both %d" (int $v.metrics.port)) -}}
{{- end -}}
{{- if $v.pipeline.enabled -}}
{{- range list "oauth2_server_uri" "client_id" -}}
{{- if not (dig "pipeline" . "" $v.config) -}}
{{- $wrong = append $wrong (printf "pipeline.enabled needs config.pipeline.%s: the pipeline signs in at the identity provider" .) -}}
{{- end -}}
{{- end -}}
{{- if not (has "pipeline.client_secret" $secrets) -}}
{{- $wrong = append $wrong "pipeline.enabled needs the secret of its client: set secretRefs.\"pipeline.client_secret\"" -}}
{{- end -}}
{{- if and (ne $v.pipeline.master "kubernetes") (hasPrefix "k8s:" $v.pipeline.master) -}}
{{- $wrong = append $wrong "pipeline.master is a k8s:// address: write `kubernetes`, and the chart sets it with its service account" -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (printf "\n\nThe values of lakewarden contradict each other:\n- %s\n" (join "\n- " $wrong)) -}}
{{- end -}}
{{- end -}}
