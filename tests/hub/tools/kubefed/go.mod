module hub-tools/kubefed

go 1.26.0

require sigs.k8s.io/kubefed v0.10.0 // indirect
