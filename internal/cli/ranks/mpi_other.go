//go:build !mpi

package ranks

func init() {
	missing["mpi"] = "this volley was built without MPI: build it with go build -tags mpi ./cmd/volley"
}
