{{/*
Pieces of Open Cluster Management's kinds, as schemas of CustomResourceDefinitions: names, defaults
and rules are those of its API, so that a document is taken, filled in and refused as with its own
definitions.
*/}}

{{/*
Whether the release installs a kind, by its name: if the hub has none, or if this release installed
it and no other field manager has written its spec since. Without a hub (`helm template`), it
installs none unless the value says so.
*/}}
{{- define "cluster-gateway.kinds.brings" -}}
{{- if eq (toString .root.Values.controllers.crds) "always" -}}true
{{- else if lookup "v1" "Namespace" "" "kube-system" -}}
{{- $there := (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .kind) | default dict -}}
{{- $annotations := (dig "metadata" "annotations" dict $there) | default dict -}}
{{- $release := .root.Release -}}
{{- $name := get $annotations "meta.helm.sh/release-name" -}}
{{- $isOurs := and (eq $name $release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") $release.Namespace) -}}
{{- $isOurs = or $isOurs (include "cluster-gateway.kinds.brought" .) -}}
{{- range $entry := dig "metadata" "managedFields" list $there -}}
{{- if and (dig "fieldsV1" "f:spec" dict $entry) (ne $entry.manager "helm") -}}{{- $isOurs = false -}}{{- end -}}
{{- end -}}
{{- if or (not $there) $isOurs -}}true{{- end -}}
{{- end -}}
{{- end }}

{{/* Whether the release had it before this upgrade, whatever was made of it since: helm would
delete what is left out. */}}
{{- define "cluster-gateway.kinds.brought" -}}
{{- $record := lookup "v1" "ConfigMap" .root.Release.Namespace (include "cluster-gateway.kinds.record" .root) -}}
{{- if hasKey ((dig "data" dict ($record | default dict)) | default dict) .kind -}}true{{- end -}}
{{- end }}

{{- define "cluster-gateway.kinds.record" -}}{{ include "cluster-gateway.controllers.name" . }}-kinds{{- end }}

{{/* Whether a part is on that needs them. */}}
{{- define "cluster-gateway.kinds.needed" -}}
{{- $values := .Values.controllers -}}
{{- if and (include "cluster-gateway.controllers.on" .) $values.crds (or $values.ocmRegistration.enabled $values.parts.placement $values.parts.availability (include "cluster-gateway.controllers.admitsWorks" .)) -}}true{{- end -}}
{{- end }}

{{/* The beginning of a definition: it is never taken away, for with it all objects of its kind
would be gone. */}}
{{- define "cluster-gateway.kinds.head" -}}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {{ .kind }}
  labels: {{- include "cluster-gateway.controllers.labels" .root | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
{{- end }}

{{/* What every object has. */}}
{{- define "cluster-gateway.kinds.object" -}}
apiVersion: {type: string}
kind: {type: string}
metadata: {type: object}
{{- end }}

{{/* Keys of labels, types of conditions: a name that may have a domain before it. */}}
{{- define "cluster-gateway.kinds.qualifiedName" -}}
type: string
maxLength: 316
pattern: ^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$
{{- end }}

{{- define "cluster-gateway.kinds.namespaceName" -}}
type: string
maxLength: 63
pattern: ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$
{{- end }}

{{/* Conditions, which some kinds do not keep by their type. */}}
{{- define "cluster-gateway.kinds.conditionList" -}}
type: array
items:
  type: object
  required: [type, status, lastTransitionTime, reason, message]
  properties:
    type: {{- include "cluster-gateway.kinds.qualifiedName" . | nindent 6 }}
    status: {type: string, enum: ["True", "False", Unknown]}
    observedGeneration: {type: integer, format: int64, minimum: 0}
    lastTransitionTime: {type: string, format: date-time}
    reason:
      type: string
      minLength: 1
      maxLength: 1024
      pattern: ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
    message: {type: string, maxLength: 32768}
{{- end }}

{{- define "cluster-gateway.kinds.conditions" -}}
{{ include "cluster-gateway.kinds.conditionList" . }}
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [type]
{{- end }}

{{/* What a selector of labels or claims asks of one key. */}}
{{- define "cluster-gateway.kinds.expressions" -}}
type: array
items:
  type: object
  required: [key, operator]
  properties:
    key: {type: string}
    operator: {type: string}
    values: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}
{{- end }}

{{- define "cluster-gateway.kinds.labelSelector" -}}
type: object
x-kubernetes-map-type: atomic
properties:
  matchLabels: {type: object, additionalProperties: {type: string}}
  matchExpressions:
    {{- include "cluster-gateway.kinds.expressions" . | nindent 4 }}
    x-kubernetes-list-type: atomic
{{- end }}

{{- define "cluster-gateway.kinds.claimSelector" -}}
type: object
properties:
  matchExpressions: {{- include "cluster-gateway.kinds.expressions" . | nindent 4 }}
{{- end }}

{{/* CPU, memory and the like, by name. */}}
{{- define "cluster-gateway.kinds.quantities" -}}
type: object
additionalProperties:
  x-kubernetes-int-or-string: true
  anyOf: [{type: integer}, {type: string}]
  pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
{{- end }}
