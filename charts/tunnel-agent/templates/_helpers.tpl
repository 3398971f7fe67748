{{- define "tunnel-agent.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "tunnel-agent.fullname" -}}
{{- $name := include "tunnel-agent.name" . -}}
{{- $default := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $default .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "tunnel-agent.serviceAccountName" -}}
{{- $default := .Values.serviceAccount.create | ternary (include "tunnel-agent.fullname" .) "default" -}}
{{- default $default .Values.serviceAccount.name }}
{{- end }}

{{- define "tunnel-agent.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tunnel-agent.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tunnel-agent.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "tunnel-agent.selectorLabels" . }}
{{- end }}

{{- define "tunnel-agent.secretName" -}}
{{- if .Values.register.enabled -}}
{{- .Values.register.bootstrapSecret -}}
{{- else -}}
{{- default (include "tunnel-agent.fullname" .) .Values.credential.existingSecret }}
{{- end -}}
{{- end }}

{{/* What the schema cannot say: values that are missing, and such as contradict each other. */}}
{{- define "tunnel-agent.check" -}}
{{- $credential := .Values.credential -}}
{{- $given := or $credential.token $credential.certificate $credential.key -}}
{{- if not .Values.cluster -}}
{{- fail "cluster is required: the name of this cluster on the hub" -}}
{{- end -}}
{{- if not .Values.servers -}}
{{- fail "servers is required: HOST:PORT of at least one tunnel-server" -}}
{{- end -}}
{{- if .Values.register.enabled -}}
{{- if not (and .Values.register.bootstrapSecret .Values.register.stateSecret) -}}
{{- fail "register.enabled needs register.bootstrapSecret, a Secret with a bootstrap kubeconfig of the hub, and register.stateSecret" -}}
{{- end -}}
{{- if eq .Values.register.bootstrapSecret .Values.register.stateSecret -}}
{{- fail "register.bootstrapSecret and register.stateSecret are the same: the agent writes the latter" -}}
{{- end -}}
{{- if or $given $credential.existingSecret -}}
{{- fail "register.enabled brings the credential: remove what is in `credential`" -}}
{{- end -}}
{{- else -}}
{{- if and $credential.existingSecret $given -}}
{{- fail "credential.existingSecret and a credential in the values are both given: remove one" -}}
{{- end -}}
{{- if not $credential.existingSecret -}}
{{- if eq $credential.type "token" -}}
{{- if or $credential.certificate $credential.key -}}
{{- fail "credential.type is token, but a certificate or key is given: set it to certificate" -}}
{{- end -}}
{{- if not $credential.token -}}
{{- fail "credential.existingSecret or credential.token is required: the chart's README shows how to create one on the hub" -}}
{{- end -}}
{{- else -}}
{{- if $credential.token -}}
{{- fail "credential.type is certificate, but a token is given: set it to token" -}}
{{- end -}}
{{- if not (and $credential.certificate $credential.key) -}}
{{- fail "credential.existingSecret, or both of credential.certificate and credential.key are required" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $credential.existingSecret -}}
{{- if or .Values.serverCA.secretKey .Values.proxy.secretKey -}}
{{- fail "serverCA.secretKey and proxy.secretKey name keys of credential.existingSecret, which is not given" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serverCA.pem .Values.serverCA.secretKey -}}
{{- fail "serverCA.pem and serverCA.secretKey are both given: remove one" -}}
{{- end -}}
{{- $known := .Capabilities.APIVersions -}}
{{- /* Rendered without a cluster, helm has a list of its own, without the API that every cluster
with aggregation serves. */ -}}
{{- if and .Values.metrics.podMonitor.enabled ($known.Has "apiregistration.k8s.io/v1") (not ($known.Has "monitoring.coreos.com/v1")) -}}
{{- fail "metrics.podMonitor.enabled: this cluster has no API monitoring.coreos.com/v1. Install the Prometheus operator first, or set it to false" -}}
{{- end -}}
{{- if and .Values.proxy.url .Values.proxy.secretKey -}}
{{- fail "proxy.url and proxy.secretKey are both given: remove one" -}}
{{- end -}}
{{- end }}
