{{/* Whether agents link here, to tunnel-servers or to the gateways themselves. */}}
{{- define "cluster-gateway.tunnel.on" -}}
{{- if or .Values.tunnel.server.enabled .Values.tunnel.embedded.enabled -}}
true
{{- end }}
{{- end }}

{{/* Whether agents of Open Cluster Management link with the certificates that the hub signed for
them. */}}
{{- define "cluster-gateway.tunnel.hubClientCA" -}}
{{- if and (include "cluster-gateway.tunnel.on" .) (or .Values.tunnel.listen.hubClientCA (and (include "cluster-gateway.controllers.on" .) .Values.controllers.ocmRegistration.enabled)) -}}
true
{{- end }}
{{- end }}

{{/* Lets the accounts of the programs that agents link to follow roles, so that a withdrawn right
ends links at once. */}}
{{- define "cluster-gateway.tunnel.roles" -}}
{{- $role := printf "%s:%s:roles" .root.Release.Namespace .name -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $role | quote }}
  labels: {{- .labels | nindent 4 }}
rules:
  - apiGroups: [rbac.authorization.k8s.io]
    resources: [clusterroles, clusterrolebindings]
    verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $role | quote }}
  labels: {{- .labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $role | quote }}}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- define "cluster-gateway.tunnel.name" -}}
{{ include "cluster-gateway.fullname" . | trunc 42 | trimSuffix "-" }}-tunnel
{{- end }}

{{- define "cluster-gateway.tunnel.agentsService" -}}
{{ include "cluster-gateway.tunnel.name" . }}-agents
{{- end }}

{{- define "cluster-gateway.tunnel.frontendsService" -}}
{{ include "cluster-gateway.tunnel.name" . }}
{{- end }}

{{/* The names that agents and gateways can always expect in the certificates, whatever the
Service's address is. */}}
{{- define "cluster-gateway.tunnel.agentsHost" -}}
{{ include "cluster-gateway.tunnel.agentsService" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "cluster-gateway.tunnel.frontendsHost" -}}
{{ include "cluster-gateway.tunnel.frontendsService" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "cluster-gateway.tunnel.selectorLabels" -}}
app.kubernetes.io/name: tunnel-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of everything that belongs to the tunnel, pods of tunnel-servers among it. */}}
{{- define "cluster-gateway.tunnel.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "cluster-gateway.tunnel.selectorLabels" . }}
{{- end }}

{{- define "cluster-gateway.tunnel.cert-manager" -}}
{{- $wanted := .Values.tls.certManager.enabled | toString -}}
{{- if or (eq $wanted "true") (and (eq $wanted "auto") (.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
true
{{- end }}
{{- end }}

{{/* What the agents' certificate is for, in one line: another value is another certificate. */}}
{{- define "cluster-gateway.tunnel.agentsNames" -}}
{{ prepend .Values.tunnel.listen.hosts (include "cluster-gateway.tunnel.agentsHost" .) | join "," }}
{{- end }}

{{/* The generated Secrets that the hub has, each as JSON of its data; empty unless they are for the
same names. */}}
{{- define "cluster-gateway.tunnel.agentsGenerated" -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (printf "%s-tls" (include "cluster-gateway.tunnel.agentsService" .)) -}}
{{- if $secret -}}
{{- $for := dig "metadata" "annotations" "cluster.core.oam.dev/generated-for" "" $secret -}}
{{- $data := default dict $secret.data -}}
{{- if and (eq $for (include "cluster-gateway.tunnel.agentsNames" .)) (hasKey $data "tls.crt") (hasKey $data "tls.key") (hasKey $data "ca.crt") -}}
{{- toJson $data }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cluster-gateway.tunnel.frontendsGenerated" -}}
{{- $found := dict -}}
{{- range $end, $infix := dict "server" "frontends" "client" "gateway" -}}
{{- $secret := lookup "v1" "Secret" $.Release.Namespace (printf "%s-%s-tls" (include "cluster-gateway.tunnel.name" $) $infix) -}}
{{- if $secret -}}
{{- $for := dig "metadata" "annotations" "cluster.core.oam.dev/generated-for" "" $secret -}}
{{- $data := default dict $secret.data -}}
{{- if and (eq $for (include "cluster-gateway.tunnel.frontendsHost" $)) (hasKey $data "tls.crt") (hasKey $data "tls.key") (hasKey $data "ca.crt") -}}
{{- $_ := set $found $end $data -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $found -}}
{{- toJson $found }}
{{- end }}
{{- end }}

{{/* Where the certificates come from: existing, cert-manager or generated; generated ones stay when
cert-manager comes later. */}}
{{- define "cluster-gateway.tunnel.agentsSource" -}}
{{- if .Values.tunnel.listen.existingSecret -}}
existing
{{- else if or .Values.tunnel.listen.issuerRef (eq (toString .Values.tls.certManager.enabled) "true") -}}
cert-manager
{{- else if and (include "cluster-gateway.tunnel.cert-manager" .) (not (include "cluster-gateway.tunnel.agentsGenerated" .)) -}}
cert-manager
{{- else -}}
generated
{{- end }}
{{- end }}

{{- define "cluster-gateway.tunnel.frontendsSource" -}}
{{- if .Values.tunnel.frontends.existingSecret -}}
existing
{{- else if eq (toString .Values.tls.certManager.enabled) "true" -}}
cert-manager
{{- else if and (include "cluster-gateway.tunnel.cert-manager" .) (not (include "cluster-gateway.tunnel.frontendsGenerated" .)) -}}
cert-manager
{{- else -}}
generated
{{- end }}
{{- end }}

{{/* Names of the Secrets. Those of cert-manager differ from the generated ones, which helm removes
when a release changes over. */}}
{{- define "cluster-gateway.tunnel.agentsSecret" -}}
{{- $suffix := eq (include "cluster-gateway.tunnel.agentsSource" .) "cert-manager" | ternary "-issued" "" -}}
{{- default (printf "%s-tls%s" (include "cluster-gateway.tunnel.agentsService" .) $suffix) .Values.tunnel.listen.existingSecret }}
{{- end }}

{{- define "cluster-gateway.tunnel.frontendsSecret" -}}
{{- $suffix := eq (include "cluster-gateway.tunnel.frontendsSource" .) "cert-manager" | ternary "-issued" "" -}}
{{- default (printf "%s-frontends-tls%s" (include "cluster-gateway.tunnel.name" .) $suffix) .Values.tunnel.frontends.existingSecret }}
{{- end }}

{{- define "cluster-gateway.tunnel.clientSecret" -}}
{{- $suffix := eq (include "cluster-gateway.tunnel.frontendsSource" .) "cert-manager" | ternary "-issued" "" -}}
{{- default (printf "%s-gateway-tls%s" (include "cluster-gateway.tunnel.name" .) $suffix) .Values.tunnel.frontends.existingClientSecret }}
{{- end }}

{{/*
The Secret with the token of a cluster's agent, as JSON: `generation` and `name`. The hub signs the
same token again for a Secret of the same name and account, so one that was deleted to revoke it is
followed by one of another name: the account's annotation tells how many there were. Without a hub
to look at, the values tell. (A deleted account comes back as another one to the hub, with another
token whatever the Secret is called.) Takes `root` and `cluster`.
*/}}
{{- define "cluster-gateway.tunnel.agentToken" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $account := lookup "v1" "ServiceAccount" $namespace (printf "tunnel-agent-%s" .cluster) -}}
{{- $generation := 1 -}}
{{- if $account -}}
{{- $generation = dig "metadata" "annotations" "cluster.core.oam.dev/token-generation" "1" $account | int -}}
{{- if not (lookup "v1" "Secret" $namespace (include "cluster-gateway.tunnel.agentTokenName" (dict "cluster" .cluster "generation" $generation))) -}}
{{- $generation = add1 $generation -}}
{{- end -}}
{{- end -}}
{{- $generation = max $generation (get (default dict .root.Values.tunnel.agentTokenGenerations) .cluster | default 1 | int) -}}
{{- toJson (dict "generation" (toString $generation) "name" (include "cluster-gateway.tunnel.agentTokenName" (dict "cluster" .cluster "generation" $generation))) }}
{{- end }}

{{/* The prefix of later ones is another, or the second Secret of `a` could be the first of `a-2`.
*/}}
{{- define "cluster-gateway.tunnel.agentTokenName" -}}
{{- if eq (int .generation) 1 -}}
tunnel-agent-{{ .cluster }}
{{- else -}}
tunnel-token-{{ .generation }}-{{ .cluster }}
{{- end }}
{{- end }}

{{/* What the schema cannot say: values that contradict each other. */}}
{{- define "cluster-gateway.tunnel.check" -}}
{{- with .Values.tunnel -}}
{{- $on := or .server.enabled .embedded.enabled -}}
{{- if and .server.enabled .embedded.enabled -}}
{{- fail "tunnel.server.enabled and tunnel.embedded.enabled are both true: the agents' Service can lead to only one of them; set one to false" -}}
{{- end -}}
{{- if and .embedded.enabled (not $.Values.autoscaling.enabled) (gt (int $.Values.replicas) 2) -}}
{{- fail "tunnel.embedded.enabled with more than two replicas: agents may link to only two gateways, and the others could not reach them; use tunnel.server.enabled" -}}
{{- end -}}
{{- if and .agents (not $on) -}}
{{- fail "tunnel.agents names clusters, but nothing accepts their agents: set tunnel.server.enabled or tunnel.embedded.enabled" -}}
{{- end -}}
{{- if and .listen.existingSecret .listen.issuerRef -}}
{{- fail "tunnel.listen.existingSecret and tunnel.listen.issuerRef are both given: remove one" -}}
{{- end -}}
{{- if and .listen.issuerRef (not .listen.hosts) -}}
{{- fail "tunnel.listen.hosts is required with tunnel.listen.issuerRef: the names for the certificate" -}}
{{- end -}}
{{- if and .listen.service.nodePort (eq .listen.service.type "ClusterIP") -}}
{{- fail "tunnel.listen.service.nodePort is given, but tunnel.listen.service.type is ClusterIP" -}}
{{- end -}}
{{- if and (or .listen.service.loadBalancerClass .listen.service.loadBalancerSourceRanges) (ne .listen.service.type "LoadBalancer") -}}
{{- fail "tunnel.listen.service.loadBalancerClass and .loadBalancerSourceRanges have an effect with type LoadBalancer only" -}}
{{- end -}}
{{- if ne (empty .frontends.existingSecret) (empty .frontends.existingClientSecret) -}}
{{- fail "tunnel.frontends.existingSecret and tunnel.frontends.existingClientSecret belong together: give both or none" -}}
{{- end -}}
{{- if and .frontends.existingSecret (not .server.enabled) -}}
{{- fail "tunnel.frontends.existingSecret is given, but frontends exist with tunnel.server.enabled only" -}}
{{- end -}}
{{- if and .listen.clientCASecret (eq .listen.clientCASecret .frontends.existingSecret) -}}
{{- fail "tunnel.listen.clientCASecret and tunnel.frontends.existingSecret are the same: every agent could pose as a gateway" -}}
{{- end -}}
{{- $ports := list (int .listen.port) (int .server.frontendPort) (int .server.adminPort) -}}
{{- if and .server.enabled (ne (len $ports) (len (uniq $ports))) -}}
{{- fail "tunnel.listen.port, tunnel.server.frontendPort and tunnel.server.adminPort must differ" -}}
{{- end -}}
{{- if and .embedded.enabled (eq (int .listen.port) (int $.Values.port)) -}}
{{- fail "tunnel.listen.port and port must differ" -}}
{{- end -}}
{{- end -}}
{{- end }}
