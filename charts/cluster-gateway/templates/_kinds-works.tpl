{{/* What a ManifestWork says, and the template of a ManifestWorkReplicaSet: a schema of Open
Cluster Management's API. */}}
{{- define "cluster-gateway.kinds.work" -}}
type: object
properties:
  workload:
    type: object
    properties:
      manifests:
        type: array
        items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  deleteOption:
    type: object
    properties:
      propagationPolicy: {type: string, enum: [Foreground, Orphan, SelectivelyOrphan], default: Foreground}
      selectivelyOrphans:
        type: object
        properties:
          orphaningRules:
            type: array
            items: {{- include "cluster-gateway.kinds.resource" . | nindent 14 }}
      ttlSecondsAfterFinished: {type: integer, format: int64}
  executor:
    type: object
    properties:
      subject:
        type: object
        required: [type]
        properties:
          type: {type: string, enum: [ServiceAccount]}
          serviceAccount:
            type: object
            required: [namespace, name]
            properties:
              namespace: {{- include "cluster-gateway.kinds.subdomain" . | nindent 16 }}
              name: {{- include "cluster-gateway.kinds.subdomain" . | nindent 16 }}
  manifestConfigs:
    type: array
    items: {{- include "cluster-gateway.kinds.manifestConfig" . | nindent 6 }}
{{- end }}

{{/* Of one manifest: how it is written, and what is reported of it. */}}
{{- define "cluster-gateway.kinds.manifestConfig" -}}
type: object
required: [resourceIdentifier]
properties:
  resourceIdentifier: {{- include "cluster-gateway.kinds.resource" . | nindent 4 }}
  updateStrategy:
    type: object
    required: [type]
    properties:
      type: {type: string, enum: [Update, CreateOnly, ServerSideApply, ReadOnly], default: Update}
      serverSideApply:
        type: object
        properties:
          force: {type: boolean}
          fieldManager: {type: string, pattern: ^work-agent, default: work-agent}
          ignoreFields:
            type: array
            x-kubernetes-list-type: map
            x-kubernetes-list-map-keys: [condition]
            items:
              type: object
              required: [condition]
              properties:
                condition: {type: string, enum: [OnSpokePresent, OnSpokeChange], default: OnSpokePresent}
                jsonPaths: {type: array, items: {type: string}}
                jsonPointers: {type: array, items: {type: string}}
                jqPathExpressions: {type: array, items: {type: string}}
  feedbackScrapeType: {type: string, enum: [Poll, Watch], default: Poll}
  feedbackRules:
    type: array
    items:
      type: object
      required: [type]
      properties:
        type: {type: string, enum: [WellKnownStatus, JSONPaths]}
        jsonPaths:
          type: array
          x-kubernetes-list-type: map
          x-kubernetes-list-map-keys: [name]
          items:
            type: object
            required: [name, path]
            properties: {name: {type: string}, path: {type: string}, version: {type: string}}
  conditionRules:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [condition]
    items:
      type: object
      required: [condition, type]
      x-kubernetes-validations:
        - rule: self.type != 'CEL' || self.condition != ""
          message: a rule of type CEL needs the name of its condition
      properties:
        condition: {type: string}
        type: {type: string, enum: [WellKnownConditions, CEL]}
        celExpressions: {type: array, items: {type: string}}
        message: {type: string}
        messageExpression: {type: string}
{{- end }}

{{/* An object by its resource. */}}
{{- define "cluster-gateway.kinds.resource" -}}
type: object
required: [resource, name]
properties:
  group: {type: string}
  resource: {type: string}
  namespace: {type: string}
  name: {type: string}
{{- end }}

{{- define "cluster-gateway.kinds.subdomain" -}}
type: string
minLength: 1
maxLength: 253
pattern: ^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$
{{- end }}

{{/* How a new template comes to clusters: what all strategies have. */}}
{{- define "cluster-gateway.kinds.rollout" -}}
minSuccessTime: {type: string, default: "0"}
progressDeadline: {type: string, pattern: "^(([0-9])+[h|m|s])|None$", default: None}
maxFailures: {{- include "cluster-gateway.kinds.countOrPercent" . | nindent 2 }}
  default: 0
{{- end }}

{{- define "cluster-gateway.kinds.countOrPercent" -}}
x-kubernetes-int-or-string: true
anyOf: [{type: integer}, {type: string}]
pattern: ^((100|[0-9]{1,2})%|[0-9]+)$
{{- end }}

{{- define "cluster-gateway.kinds.groups" -}}
type: array
items: {type: object, properties: {groupName: {type: string}, groupIndex: {type: integer, format: int32}}}
{{- end }}

{{/* Numbers of works. */}}
{{- define "cluster-gateway.kinds.summary" -}}
type: object
properties:
  {{- range tuple "total" "desiredTotal" "updated" "applied" "available" "progressing" "degraded" }}
  {{ . }}: {type: integer}
  {{- end }}
{{- end }}
