{{- define "cluster-gateway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "cluster-gateway.fullname" -}}
{{- $name := include "cluster-gateway.name" . -}}
{{- $default := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $default .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "cluster-gateway.serviceName" -}}
{{- default (include "cluster-gateway.fullname" .) .Values.service.name }}
{{- end }}

{{- define "cluster-gateway.serviceAccountName" -}}
{{- $default := .Values.serviceAccount.create | ternary (include "cluster-gateway.fullname" .) "default" -}}
{{- default $default .Values.serviceAccount.name }}
{{- end }}

{{/*
The namespace of the clusters' Secrets. The gateway reads every Secret there, so with the tunnel on
they have a separate namespace, apart from agents' tokens and the keys of CAs. A release that has
clusters keeps its namespace: the release's own while clusters are registered there, and the
separate one once the release has used it, even if the tunnel is turned off. Without a hub to read
there is nothing to keep. Objects in the separate namespace do not decide, because anyone who may
write there could forge them.
*/}}
{{- define "cluster-gateway.secretNamespace" -}}
{{- $own := include "cluster-gateway.clustersNamespace" . -}}
{{- if .Values.secretNamespace -}}
{{- tpl .Values.secretNamespace . -}}
{{- else if .Values.dialects.karmada.kubeconfigSecret -}}
{{- /* On another API server, where nothing of this release is. */ -}}
{{- .Release.Namespace -}}
{{- else if eq $own (include "cluster-gateway.installedSecretNamespace" .) -}}
{{- $own -}}
{{- else if and (include "cluster-gateway.tunnel.on" .) (not (include "cluster-gateway.hasClusters" .)) -}}
{{- with include "cluster-gateway.clustersNamespaceStranger" . -}}
{{- fail (printf "namespace %s already exists, and this release did not create it: %s. Every user that may write Secrets there controls where clusters' requests and credentials go. To use it, set secretNamespace=%s; otherwise set secretNamespace to another namespace" $own . $own) -}}
{{- end -}}
{{- $own -}}
{{- else -}}
{{- .Release.Namespace -}}
{{- end }}
{{- end }}

{{/* Where the release's Deployment has the gateway look for clusters; empty if it is not there.
*/}}
{{- define "cluster-gateway.installedSecretNamespace" -}}
{{- $deployment := default dict (lookup "apps/v1" "Deployment" .Release.Namespace (include "cluster-gateway.fullname" .)) -}}
{{- $found := "" -}}
{{- range dig "spec" "template" "spec" "containers" list $deployment -}}
{{- if eq .name "cluster-gateway" -}}
{{- range .args -}}
{{- if hasPrefix "--secret-namespace=" . -}}
{{- $found = trimPrefix "--secret-namespace=" . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found -}}
{{- end }}

{{/* For the clusters' Secrets and nothing else. */}}
{{- define "cluster-gateway.clustersNamespace" -}}
{{ .Release.Namespace | trunc 54 | trimSuffix "-" }}-clusters
{{- end }}

{{/* Whose that namespace is, in words, if it is there without this release's annotations of helm,
which outlive the release; else empty. */}}
{{- define "cluster-gateway.clustersNamespaceStranger" -}}
{{- with lookup "v1" "Namespace" "" (include "cluster-gateway.clustersNamespace" .) -}}
{{- $annotations := default dict .metadata.annotations -}}
{{- $release := printf "%s/%s" (get $annotations "meta.helm.sh/release-namespace") (get $annotations "meta.helm.sh/release-name") -}}
{{- if eq $release "/" -}}
it has no annotations of a helm release
{{- else if ne $release (printf "%s/%s" $.Release.Namespace $.Release.Name) -}}
its annotations name the helm release {{ quote $release }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether clusters are registered in the release's namespace. */}}
{{- define "cluster-gateway.hasClusters" -}}
{{- range (lookup "v1" "Secret" .Release.Namespace "").items -}}
{{- if hasKey (default dict .metadata.labels) "cluster.core.oam.dev/cluster-credential-type" -}}
true
{{- end }}
{{- end }}
{{- end }}

{{/* The name that the hub expects in the serving certificate. */}}
{{- define "cluster-gateway.host" -}}
{{- printf "%s.%s.svc" (include "cluster-gateway.serviceName" .) .Release.Namespace }}
{{- end }}

{{- define "cluster-gateway.selectorLabels" -}}
{{- if .Values.selectorLabels -}}
{{- toYaml .Values.selectorLabels }}
{{- else -}}
app.kubernetes.io/name: {{ include "cluster-gateway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end }}

{{- define "cluster-gateway.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "cluster-gateway.selectorLabels" . }}
{{- end }}

{{/*
Where the serving certificate comes from: existing, cert-manager or generated. With `auto`, a
release that has a generated pair keeps it when cert-manager is installed later.
*/}}
{{- define "cluster-gateway.tls.source" -}}
{{- $wanted := .Values.tls.certManager.enabled | toString -}}
{{- if .Values.tls.existingSecret -}}
existing
{{- else if eq $wanted "true" -}}
cert-manager
{{- else if and (eq $wanted "auto") (.Capabilities.APIVersions.Has "cert-manager.io/v1") (not (include "cluster-gateway.tls.generated" .)) -}}
cert-manager
{{- else -}}
generated
{{- end }}
{{- end }}

{{- define "cluster-gateway.tls.baseName" -}}
{{- default (printf "%s-tls" (include "cluster-gateway.fullname" .)) .Values.tls.secretName }}
{{- end }}

{{- define "cluster-gateway.tls.secretName" -}}
{{- $source := include "cluster-gateway.tls.source" . -}}
{{- if eq $source "existing" -}}
{{ .Values.tls.existingSecret }}
{{- else if eq $source "cert-manager" -}}
{{- /* Another name than the generated one, which helm removes when a release changes over. */ -}}
{{ include "cluster-gateway.tls.baseName" . }}-issued
{{- else -}}
{{ include "cluster-gateway.tls.baseName" . }}
{{- end }}
{{- end }}

{{/* The generated pair that the hub has for this host, as JSON; empty if there is none. */}}
{{- define "cluster-gateway.tls.generated" -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (include "cluster-gateway.tls.baseName" .) -}}
{{- if $secret -}}
{{- $host := dig "metadata" "annotations" "cluster.core.oam.dev/generated-for" "" $secret -}}
{{- $data := default dict $secret.data -}}
{{- if and (eq $host (include "cluster-gateway.host" .)) (hasKey $data "tls.crt") (hasKey $data "tls.key") (hasKey $data .Values.tls.caKey) -}}
{{- toJson $data }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The CA that signs a certificate which helm generates, as JSON: `cert`, `key` and `bundle`, base64 of
PEM. Its Secret has the name of the certificate's with "-ca" behind it, and no pod mounts it:
deleting the certificate's Secret renews that below the same CA. If the CA's own Secret is gone,
there is a new CA, and `bundle` holds the newest one of before besides, for those who have a
certificate of that still. Of a random key, so include it once for each CA. Takes `root`, `secret`
(the certificate's), `commonName`, and `leaves`: the certificates' Secrets that the hub has.
*/}}
{{- define "cluster-gateway.authority" -}}
{{- $found := default dict (lookup "v1" "Secret" .root.Release.Namespace (printf "%s-ca" .secret)) -}}
{{- $data := default dict $found.data -}}
{{- if and (hasKey $data "tls.crt") (hasKey $data "tls.key") (hasKey $data "ca.crt") -}}
{{- toJson (dict "cert" (index $data "tls.crt") "key" (index $data "tls.key") "bundle" (index $data "ca.crt")) -}}
{{- else -}}
{{- $made := genCAWithKey .commonName (int .root.Values.tls.days) (genPrivateKey "ecdsa") -}}
{{- $before := "" -}}
{{- range .leaves -}}
{{- $before = default $before (regexFind "-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?" (b64dec .)) -}}
{{- end -}}
{{- toJson (dict "cert" (b64enc $made.Cert) "key" (b64enc $made.Key) "bundle" (b64enc (print $made.Cert $before))) -}}
{{- end -}}
{{- end }}

{{/*
Refuses objects of the Prometheus operator if the hub does not serve them: helm's own error names no
value. If the chart is rendered without a hub, that is not known: helm then has a list of its own,
without the API that every hub with aggregation serves.
*/}}
{{- define "cluster-gateway.checkMonitoring" -}}
{{- if and (.Capabilities.APIVersions.Has "apiregistration.k8s.io/v1") (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- range $value := list "serviceMonitor" "prometheusRule" -}}
{{- if dig $value "enabled" false $.Values.metrics -}}
{{- fail (printf "metrics.%s.enabled: this hub has no API monitoring.coreos.com/v1. Install the Prometheus operator first, or set it to false" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* That Secret. Takes `root`, `secret`, `labels` and `authority`. */}}
{{- define "cluster-gateway.authoritySecret" }}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .secret }}-ca
  namespace: {{ .root.Release.Namespace }}
  labels: {{- .labels | nindent 4 }}
type: kubernetes.io/tls
data:
  tls.crt: {{ .authority.cert }}
  tls.key: {{ .authority.key }}
  ca.crt: {{ .authority.bundle }}
{{- end }}

{{/* Has the hub send version v1alpha1 of a group to the gateway. Takes `root`, `group` and `ca`,
base64, which is empty if it is injected. */}}
{{- define "cluster-gateway.apiService" }}
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1alpha1.{{ .group }}
  labels:
    {{- include "cluster-gateway.labels" .root | nindent 4 }}
    {{- with .root.Values.apiService.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if eq (include "cluster-gateway.tls.source" .root) "cert-manager" }}
  annotations:
    cert-manager.io/inject-ca-from: {{ .root.Release.Namespace }}/{{ include "cluster-gateway.tls.secretName" .root }}
  {{- end }}
spec:
  group: {{ .group }}
  version: v1alpha1
  groupPriorityMinimum: 2000
  versionPriority: 10
  {{- with .ca }}
  caBundle: {{ . }}
  {{- end }}
  service:
    name: {{ include "cluster-gateway.serviceName" .root }}
    namespace: {{ .root.Release.Namespace }}
    port: {{ .root.Values.service.port }}
{{- end }}

{{/* Fails if the hub has a Karmada that the gateway does not stand beside: its clients would get
the gateway's clusters for its own. */}}
{{- define "cluster-gateway.karmada.check" }}
{{- if and .Values.dialects.karmada.upstreamSecret (not .Values.dialects.karmada.upstream) }}
{{- fail "dialects.karmada.upstreamSecret has no effect without dialects.karmada.upstream" }}
{{- end }}
{{- if and .Values.dialects.karmada.upstream .Values.dialects.karmada.register }}
{{- fail "dialects.karmada.register has no effect with dialects.karmada.upstream: Karmada itself gets the writes of clusters" }}
{{- end }}
{{- if .Values.dialects.karmada.kubeconfigSecret }}
{{- include "cluster-gateway.karmada.checkElsewhere" . }}
{{- end }}
{{- $found := lookup "apiregistration.k8s.io/v1" "APIService" "" "v1alpha1.cluster.karmada.io" }}
{{- if and $found (not .Values.dialects.karmada.takeOver) (not .Values.dialects.karmada.kubeconfigSecret) }}
{{- $release := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $found }}
{{- if ne $release .Release.Name }}
{{- fail "dialects.karmada.enabled: the hub has an APIService v1alpha1.cluster.karmada.io that is not this release's, probably a running Karmada's. Its clients would get the gateway's clusters for its own. If there is no Karmada any more, delete it, or set dialects.karmada.takeOver=true and run helm with --take-ownership. To stand beside a Karmada, set dialects.karmada.upstream too" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Refuses what would be on this hub, where gateways and controllers have another. */}}
{{- define "cluster-gateway.karmada.checkElsewhere" }}
{{- if not .Values.dialects.karmada.upstream }}
{{- fail "dialects.karmada.kubeconfigSecret has no effect without dialects.karmada.upstream" }}
{{- end }}
{{- $controllers := .Values.controllers }}
{{- $without := dict "access" .Values.access "ocm.enabled" .Values.ocm.enabled "tunnel.embedded.enabled" .Values.tunnel.embedded.enabled
  "delivery.enabled" .Values.delivery.enabled "controllers.ocmRegistration.enabled" $controllers.ocmRegistration.enabled
  "controllers.workAdmission" $controllers.workAdmission "controllers.removeClusters" $controllers.removeClusters
  "controllers.karmadaKubeconfigSecret" $controllers.karmadaKubeconfigSecret }}
{{- range $part, $on := $controllers.parts }}
{{- $_ := set $without (printf "controllers.parts.%s" $part) $on }}
{{- end }}
{{- range $value, $on := $without }}
{{- if $on }}
{{- fail (printf "dialects.karmada.kubeconfigSecret excludes %s, which is for this hub: with it, gateways and controllers know Karmada's API server alone" $value) }}
{{- end }}
{{- end }}
{{- end }}

{{/*
URLs of the gateways' Service in each spelling that pods can dial, separated by commas: a cluster
there would lead back. A Service has its addresses from the first installation on, so that they are
known from the first upgrade on.
*/}}
{{- define "cluster-gateway.ownEndpoints" -}}
{{- $name := include "cluster-gateway.serviceName" . -}}
{{- $host := include "cluster-gateway.host" . -}}
{{- $hosts := list $host $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.cluster.local" $host) -}}
{{- range dig "spec" "clusterIPs" list (default dict (lookup "v1" "Service" .Release.Namespace $name)) -}}
{{- if ne . "None" -}}
{{- $hosts = append $hosts (ternary (printf "[%s]" .) . (contains ":" .)) -}}
{{- end -}}
{{- end -}}
{{- $ports := list .Values.service.port -}}
{{- if .Values.dialects.ocmUserServer.enabled -}}
{{- $ports = append $ports .Values.dialects.ocmUserServer.port -}}
{{- end -}}
{{- $urls := list -}}
{{- range $port := $ports -}}
{{- range $hosts -}}
{{- $urls = append $urls (printf "https://%s:%v" . $port) -}}
{{- end -}}
{{- end -}}
{{- join "," $urls -}}
{{- end }}

{{/* Names of this chart's Secrets, which no cluster may have. */}}
{{- define "cluster-gateway.reservedNames" -}}
{{ include "cluster-gateway.fullname" . }},tunnel-agent{{ with .Values.tls.existingSecret }},{{ . }}{{ end }}{{ with .Values.tls.secretName }},{{ . }}{{ end }}
{{- end }}
