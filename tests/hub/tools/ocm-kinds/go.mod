module hub-tools/ocm-kinds

go 1.26.0

require open-cluster-management.io/api v1.3.0 // indirect
