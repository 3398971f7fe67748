{{- define "cluster-gateway.controllers.name" -}}
{{ include "cluster-gateway.fullname" . | trunc 40 | trimSuffix "-" }}-controllers
{{- end }}

{{- define "cluster-gateway.controllers.selectorLabels" -}}
app.kubernetes.io/name: cluster-gateway-controllers
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cluster-gateway.controllers.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "cluster-gateway.controllers.selectorLabels" . }}
{{- end }}

{{/* The sources as --enable names them, separated by commas. */}}
{{- define "cluster-gateway.controllers.sources" -}}
{{- $sources := list -}}
{{- range $key, $on := .Values.controllers.sources -}}
{{- if $on -}}
{{- $sources = append $sources (eq $key "clusterProfileImport" | ternary "clusterprofile-import" $key) -}}
{{- end -}}
{{- end -}}
{{- $sources | sortAlpha | join "," -}}
{{- end }}

{{/* The parts as --enable names them, separated by commas. */}}
{{- define "cluster-gateway.controllers.parts" -}}
{{- $parts := list -}}
{{- if .Values.controllers.parts.managedServiceAccount -}}
{{- $parts = append $parts "managed-serviceaccount" -}}
{{- end -}}
{{- join "," $parts -}}
{{- end }}

{{/* What --enable names. */}}
{{- define "cluster-gateway.controllers.enabled" -}}
{{- $names := list (include "cluster-gateway.controllers.sources" .) (include "cluster-gateway.controllers.parts" .) -}}
{{- join "," (without $names "") -}}
{{- end }}

{{/*
Where the CA of the gateway's certificate is, which parts verify it with: the Secret of the serving certificate, or a ConfigMap with what
values give. Of the Secret, only this key is mounted.
*/}}
{{- define "cluster-gateway.controllers.gatewayCA" -}}
{{- if eq (include "cluster-gateway.tls.source" .) "existing" -}}
configMap:
  name: {{ include "cluster-gateway.controllers.name" . }}-gateway-ca
  defaultMode: 288 # 0440
{{- else -}}
secret:
  secretName: {{ include "cluster-gateway.tls.secretName" . }}
  items: [{key: {{ eq (include "cluster-gateway.tls.source" .) "generated" | ternary .Values.tls.caKey "ca.crt" | quote }}, path: ca.crt}]
  defaultMode: 288 # 0440
{{- end -}}
{{- end }}

{{/* Refuses values that contradict each other. */}}
{{- define "cluster-gateway.controllers.check" -}}
{{- $values := .Values.controllers -}}
{{- if not (include "cluster-gateway.controllers.enabled" .) -}}
{{- fail "controllers.enabled needs a source or a part: set controllers.sources.capi=true, or another" -}}
{{- end -}}
{{- if and $values.sources.clusterProfileImport (not $values.clusterProfileProviders) -}}
{{- fail "controllers.sources.clusterProfileImport needs controllers.clusterProfileProviders: the programs that issue credentials" -}}
{{- end -}}
{{- if and $values.karmadaKubeconfigSecret (not $values.sources.karmada) -}}
{{- fail "controllers.karmadaKubeconfigSecret has no effect without controllers.sources.karmada" -}}
{{- end -}}
{{- end }}
