#!/bin/sh
# Packs kubectl-clusters for krew (https://krew.sigs.k8s.io), and writes the plugin's manifest.
#
#     cli/krew.sh VERSION URL DIRECTORY OS-ARCH=PROGRAM …  > clusters.yaml
#
# VERSION as in v0.1.0; URL is where the archives will be; DIRECTORY takes the archives; each
# program is one platform's, as in linux-amd64=target/release/kubectl-clusters. krew installs what
# the manifest's checksums name and nothing else.
set -eu
if [ $# -lt 4 ]; then sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; fi
version=$1 url=${2%/} directory=$3
shift 3
license=$(dirname "$0")/../LICENSE
case $version in v[0-9]*.[0-9]*.[0-9]*) ;; *) echo "VERSION $version: krew wants v0.1.0" >&2; exit 2 ;; esac
mkdir -p "$directory"
cat <<EOF
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: clusters
spec:
  version: $version
  homepage: $url
  shortDescription: Join, see and use the clusters behind a gateway
  description: |
    Joins clusters to a hub that runs the cluster-gateway, lists them with health and latency, checks and probes the way to
    each, reads one resource or runs one command over many, and rotates their credentials.
  caveats: |
    Your kubeconfig's current context is the hub; choose another with --context.
  platforms:
EOF
for platform; do
    name=${platform%%=*} program=${platform#*=}
    os=${name%%-*} arch=${name#*-}
    case $os-$arch in linux-* | darwin-*) ;; *) echo "$platform: write linux-amd64=PROGRAM or darwin-arm64=PROGRAM" >&2; exit 2 ;; esac
    [ -f "$program" ] || { echo "$platform: there is no file $program: build it with cargo build --release -p kubectl-clusters" >&2; exit 2; }
    archive=kubectl-clusters-$version-$name.tar.gz
    staged=$(mktemp -d)
    install -m 0755 "$program" "$staged/kubectl-clusters"
    install -m 0644 "$license" "$staged/LICENSE"
    tar -C "$staged" -czf "$directory/$archive" kubectl-clusters LICENSE
    rm -r "$staged"
    cat <<EOF
    - selector:
        matchLabels: {os: $os, arch: $arch}
      uri: $url/$archive
      sha256: "$( (sha256sum "$directory/$archive" 2>/dev/null || shasum -a 256 "$directory/$archive") | cut -d ' ' -f 1)"
      files:
        - {from: kubectl-clusters, to: .}
        - {from: LICENSE, to: .}
      bin: kubectl-clusters
EOF
done
