{{/*
Whether there are controllers. `delivery.enabled` stands for them and four of their parts: the
values are as if each was set, from the first template on that asks.
*/}}
{{- define "cluster-gateway.controllers.on" -}}
{{- if .Values.delivery.enabled -}}
{{- $_ := set .Values.controllers "enabled" true -}}
{{- range list "placement" "replicaSets" "manifestworks" "availability" -}}
{{- $_ := set $.Values.controllers.parts . true -}}
{{- end -}}
{{- end -}}
{{- if .Values.controllers.enabled -}}true{{- end -}}
{{- end }}

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
{{- if .Values.controllers.parts.clusterProfile -}}
{{- $parts = append $parts "clusterprofile" -}}
{{- end -}}
{{- if .Values.controllers.ocmRegistration.enabled -}}
{{- $parts = append $parts "ocm-registration" -}}
{{- end -}}
{{- if .Values.controllers.parts.managedServiceAccount -}}
{{- $parts = append $parts "managed-serviceaccount" -}}
{{- end -}}
{{- if .Values.controllers.parts.manifestworks -}}
{{- $parts = append $parts "manifestworks" -}}
{{- end -}}
{{- if .Values.controllers.parts.placement -}}
{{- $parts = append $parts "placement" -}}
{{- end -}}
{{- if .Values.controllers.parts.replicaSets -}}
{{- $parts = append $parts "replica-sets" -}}
{{- end -}}
{{- if .Values.controllers.parts.argocd -}}
{{- $parts = append $parts "argocd" -}}
{{- end -}}
{{- if .Values.controllers.parts.availability -}}
{{- $parts = append $parts "availability" -}}
{{- end -}}
{{- join "," $parts -}}
{{- end }}

{{/* Parts that reach members, or may: all but placement, replica-sets and argocd. */}}
{{- define "cluster-gateway.controllers.memberParts" -}}
{{- without (splitList "," (include "cluster-gateway.controllers.parts" .)) "" "placement" "replica-sets" "argocd" | join "," -}}
{{- end }}

{{/* Parts that need to know how the gateway's certificate is verified: those, and argocd, which
writes it for Argo CD. */}}
{{- define "cluster-gateway.controllers.gatewayParts" -}}
{{- without (splitList "," (include "cluster-gateway.controllers.parts" .)) "" "placement" "replica-sets" | join "," -}}
{{- end }}

{{/* Namespace and name of the ServiceAccount that Argo CD comes as, separated by a slash. */}}
{{- define "cluster-gateway.controllers.argocdAccount" -}}
{{- $argocd := .Values.controllers.argocd -}}
{{- contains "/" $argocd.serviceAccount | ternary $argocd.serviceAccount (printf "%s/%s" $argocd.namespace $argocd.serviceAccount) -}}
{{- end }}

{{/* What --enable names. */}}
{{- define "cluster-gateway.controllers.enabled" -}}
{{- $names := list (include "cluster-gateway.controllers.sources" .) (include "cluster-gateway.controllers.parts" .) -}}
{{- join "," (without $names "") -}}
{{- end }}

{{/*
Where the CA of the gateway's certificate is, which parts verify it with: the Secret of the serving
certificate, or a ConfigMap with what values give. Of the Secret, only this key is mounted.
*/}}
{{- define "cluster-gateway.controllers.gatewayCA" -}}
{{- if or .Values.controllers.gatewayCA (eq (include "cluster-gateway.tls.source" .) "existing") -}}
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

{{/*
Rules of the part ocm-registration: those of upstream's registration controllers, less Secrets. It
holds what it grants to accepted clusters, because the hub lets no user grant more than they have:
there is no escalate and no bind.
*/}}
{{- define "cluster-gateway.controllers.ocmRegistrationRules" -}}
# Requests of agents. The signer is the one of clients' certificates, and no other.
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests]
  verbs: [get, list, watch, create]
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests/approval]
  verbs: [update]
- apiGroups: [certificates.k8s.io]
  resources: [signers]
  resourceNames: [kubernetes.io/kube-apiserver-client]
  verbs: [approve]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
# Clusters, and what acceptance makes for them.
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  verbs: [get, list, watch, update, patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters/status]
  verbs: [update, patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclustersets, managedclustersetbindings]
  verbs: [list, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclustersets]
  verbs: [create, patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclustersets/status, managedclustersetbindings/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch, create]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles, clusterrolebindings, rolebindings]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update]
# Whether OCM's own controllers run without their Lease.
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [cluster-manager-registration-controller]
  verbs: [list, watch]
# Of clusters that leave. The rest is handed out to agents.
- apiGroups: [addon.open-cluster-management.io]
  resources: [managedclusteraddons]
  verbs: [get, list, watch, delete]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  verbs: [get, list, watch, update, patch, delete]
- apiGroups: [addon.open-cluster-management.io]
  resources: [managedclusteraddons/status]
  verbs: [update, patch]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks/status]
  verbs: [update, patch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch, update]
- apiGroups: [register.open-cluster-management.io]
  resources: [managedclusters/clientcertificates]
  verbs: [renew]
- apiGroups: [cluster.core.oam.dev]
  resources: [clustergateways/tunnel]
  verbs: [create]
{{- if .Values.controllers.sources.ocm }}
# The token that the source ocm reads, which agents may fill (--credential-service-account).
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ .Values.controllers.ocm.credential | quote }}]
  verbs: [get, create, patch]
- apiGroups: [authentication.open-cluster-management.io]
  resources: [managedserviceaccounts]
  resourceNames: [{{ .Values.controllers.ocm.credential | quote }}]
  verbs: [get]
{{- end }}
# What the admission policies ask of the controllers: the times of taints, and the set of clusters
# without one.
- apiGroups: [register.open-cluster-management.io]
  resources: [managedclusters/taints]
  verbs: [update]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclustersets/join]
  resourceNames: [default]
  verbs: [create]
{{- if .Values.controllers.ocmRegistration.autoApproveUsers }}
- apiGroups: [register.open-cluster-management.io]
  resources: [managedclusters/accept]
  verbs: [update]
{{- end }}
{{- end }}

{{/*
Rules of the part placement. It owns what it writes, which some hubs allow only to who may set the
finalizers of the owner.
*/}}
{{- define "cluster-gateway.controllers.placementRules" -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements, managedclusters, managedclustersets, managedclustersetbindings, addonplacementscores]
  verbs: [list, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements/status, placementdecisions/status]
  verbs: [patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements/finalizers]
  verbs: [update]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placementdecisions]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [placement-lock]
  verbs: [list, watch]
{{- end }}

{{/* Rules of the part replica-sets. It reads no Secret and reaches no member. */}}
{{- define "cluster-gateway.controllers.replicaSetsRules" -}}
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworkreplicasets]
  verbs: [list, watch, patch] # its finalizer
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworkreplicasets/status]
  verbs: [patch]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements, placementdecisions]
  verbs: [list, watch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [work-manager-lock]
  verbs: [list, watch]
{{- end }}

{{/*
Rules of the part manifestworks. On members, it may do what the credentials that are registered for
them may.
*/}}
{{- define "cluster-gateway.controllers.manifestworksRules" -}}
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  # Those that are not kept in memory are read at their turn.
  verbs: [get, list, watch, patch]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks/status]
  verbs: [patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  verbs: [list, watch]
# Its UID tells this hub from others.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
# Members, through the gateway.
- apiGroups: [cluster.core.oam.dev]
  resources: [clustergateways/proxy]
  {{- with .Values.controllers.manifestworks.clusters }}
  resourceNames: {{ toJson . }}
  {{- end }}
  verbs: [get, create, update, patch, delete]
{{- end }}

{{/* Rules of the part availability. It asks members for no more than whether they are ready. */}}
{{- define "cluster-gateway.controllers.availabilityRules" -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  verbs: [list, watch, patch] # their taints
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters/status]
  verbs: [patch]
# What the admission policies ask for of who sets the times of taints.
- apiGroups: [register.open-cluster-management.io]
  resources: [managedclusters/taints]
  verbs: [update]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [registration-controller-lock]
  verbs: [list, watch]
# Whether the agent of a cluster still renews its own.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [managed-cluster-lease]
  verbs: [get]
# Members, through the gateway.
- apiGroups: [cluster.core.oam.dev]
  resources: [clustergateways/proxy]
  {{- with .Values.controllers.manifestworks.clusters }}
  resourceNames: {{ toJson . }}
  {{- end }}
  verbs: [get]
{{- end }}

{{/* Whether an admission policy guards works: where they are delivered, and where a value asks for
it. */}}
{{- define "cluster-gateway.controllers.admitsWorks" -}}
{{- if include "cluster-gateway.controllers.on" . -}}
{{- $parts := .Values.controllers.parts -}}
{{- if or $parts.manifestworks $parts.replicaSets .Values.controllers.workAdmission -}}true{{- end -}}
{{- end -}}
{{- end }}

{{/* Refuses values that contradict each other. */}}
{{- define "cluster-gateway.controllers.check" -}}
{{- $values := .Values.controllers -}}
{{- if not (include "cluster-gateway.controllers.enabled" .) -}}
{{- fail "controllers.enabled needs a source or a part: set controllers.sources.capi=true, or another" -}}
{{- end -}}
{{- if and $values.clusterProfileNamespaces (not $values.parts.clusterProfile) -}}
{{- fail "controllers.clusterProfileNamespaces has no effect without controllers.parts.clusterProfile" -}}
{{- end -}}
{{- if and (has "placement" $values.neverStandBy) (not $values.parts.placement) -}}
{{- fail "controllers.neverStandBy: placement has no effect without controllers.parts.placement" -}}
{{- end -}}
{{- if and (has "replica-sets" $values.neverStandBy) (not $values.parts.replicaSets) -}}
{{- fail "controllers.neverStandBy: replica-sets has no effect without controllers.parts.replicaSets" -}}
{{- end -}}
{{- if and $values.rivalNamespaces (not (or $values.parts.placement $values.parts.replicaSets $values.parts.availability $values.ocmRegistration.enabled)) -}}
{{- fail "controllers.rivalNamespaces has no effect without controllers.parts.placement, .replicaSets or .availability, or controllers.ocmRegistration.enabled" -}}
{{- end -}}
{{- if and $values.rolloutNeedsRules (not (or $values.parts.replicaSets $values.parts.manifestworks)) -}}
{{- fail "controllers.rolloutNeedsRules has no effect without controllers.parts.replicaSets or .manifestworks" -}}
{{- end -}}
{{- $works := $values.manifestworks -}}
{{- if and (or $works.hubURL $works.requireExecutor $works.rawFeedback) (not $values.parts.manifestworks) -}}
{{- fail "controllers.manifestworks has no effect without controllers.parts.manifestworks" -}}
{{- end -}}
{{- if and $works.clusters (not (or $values.parts.manifestworks $values.parts.availability)) -}}
{{- fail "controllers.manifestworks.clusters has no effect without controllers.parts.manifestworks or availability" -}}
{{- end -}}
{{- if and $values.sources.clusterProfileImport (not $values.clusterProfileProviders) -}}
{{- fail "controllers.sources.clusterProfileImport needs controllers.clusterProfileProviders: the programs that issue credentials" -}}
{{- end -}}
{{- $isOld := semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version -}}
{{- if and $isOld $values.ocmRegistration.enabled -}}
{{- fail (printf "controllers.ocmRegistration.enabled: this hub is Kubernetes %s, and the admission policies without which no cluster is accepted need 1.30" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and $isOld (include "cluster-gateway.controllers.admitsWorks" .) -}}
{{- fail (printf "controllers.workAdmission (which parts.manifestworks and parts.replicaSets turn on): this hub is Kubernetes %s, and the admission policies that say who may name an executor need 1.30" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and $values.ocmRegistration.autoApproveUsers (not $values.ocmRegistration.enabled) -}}
{{- fail "controllers.ocmRegistration.autoApproveUsers has no effect without controllers.ocmRegistration.enabled" -}}
{{- end -}}
{{- if and $values.karmadaKubeconfigSecret (not $values.sources.karmada) -}}
{{- fail "controllers.karmadaKubeconfigSecret has no effect without controllers.sources.karmada" -}}
{{- end -}}
{{- end }}
