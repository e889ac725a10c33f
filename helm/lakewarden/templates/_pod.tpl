{{/* What the pods of all components share: (dict "root" $ "component" "worker" "values" .Values.worker) */}}
{{- define "lakewarden.placement" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- if kindIs "slice" .values.topologySpreadConstraints }}
{{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- $ := . }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "lakewarden.selector" $ | nindent 8 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The container's image, variables and security: (dict "root" $ "component" "worker" "values" … "image" …) */}}
{{- define "lakewarden.container" -}}
image: {{ include "lakewarden.image" (dict "root" .root "image" .image) }}
imagePullPolicy: {{ .image.pullPolicy }}
securityContext: {{- toYaml .root.Values.securityContext | nindent 2 }}
env:
  - name: POD_IP
    valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- if eq .component "pipeline" }}
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}
{{- include "lakewarden.env" . | nindent 2 }}
{{- with .values.env }}
{{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
{{- if and .root.Values.persistence.enabled (has .component (list "server" "worker")) }}
  - {name: warehouses, mountPath: /warehouses}
{{- end }}
{{- if and (eq .component "pipeline") (eq .root.Values.pipeline.master "kubernetes") }}
  - {name: executors, mountPath: /etc/lakewarden, readOnly: true}
{{- end }}
{{- with .values.volumeMounts }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "lakewarden.volumes" -}}
- name: tmp
  emptyDir: {{- if eq .component "pipeline" }} {sizeLimit: {{ .values.scratch }}}{{ else }} {sizeLimit: 1Gi}{{ end }}
{{- if and .root.Values.persistence.enabled (has .component (list "server" "worker")) }}
- name: warehouses
  persistentVolumeClaim:
    claimName: {{ .root.Values.persistence.existingClaim | default (printf "%s-warehouses" (include "lakewarden.fullname" .root)) }}
{{- end }}
{{- if and (eq .component "pipeline") (eq .root.Values.pipeline.master "kubernetes") }}
- name: executors
  configMap: {name: {{ include "lakewarden.fullname" .root }}-executors}
{{- end }}
{{- with .values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Before a pod starts: migrate, or wait until another one has */}}
{{- define "lakewarden.initContainers" -}}
- name: database
  {{- include "lakewarden.container" . | nindent 2 }}
  {{- if eq .root.Values.migrations.mode "init" }}
  args: [migrate, --wait, {{ .root.Values.migrations.waitSeconds | toString | quote }}]
  {{- else }}
  args: [migrate, --check, --wait, {{ .root.Values.migrations.waitSeconds | toString | quote }}]
  {{- end }}
  resources: {{- toYaml .root.Values.migrations.resources | nindent 4 }}
{{- end -}}

{{- define "lakewarden.podMetadata" -}}
labels: {{- include "lakewarden.labels" . | nindent 2 }}
{{- with .values.podLabels }}
{{- toYaml . | nindent 2 }}
{{- end }}
annotations:
  # values of this release's Secret are read when a pod starts
  checksum/secret: {{ toJson .root.Values.secretValues | sha256sum }}
{{- with .values.podAnnotations }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "lakewarden.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "lakewarden.fullname" .root }}-{{ .component }}
  labels: {{- include "lakewarden.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels: {{- include "lakewarden.selector" . | nindent 6 }}
{{- end -}}
