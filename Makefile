STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build test check race mpi verify-all differential mutation bench fuzz

build: ## the binary
	go build ./cmd/volley

test: ## what the README says
	go test ./...

check: test ## what a change needs
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "gofmt would change these"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

race: ## the race detector, where goroutines meet
	go test -race . ./executor ./transport/... ./tune ./internal/cli

MPI_RANKS = 1 2 3 5 16
mpi: export OMPI_ALLOW_RUN_AS_ROOT = 1
mpi: export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
mpi: ## jobs under mpirun, and the library for C; needs Open MPI, pkg-config and a C compiler
	go vet -tags mpi ./...
	go run $(STATICCHECK) -tags mpi ./transport/mpi ./internal/cli ./cmd/... ./examples/mpi ./bench/...
	@dir=$$(mktemp -d) && go test -tags mpi -c -o $$dir/transport ./transport/mpi && \
	for n in $(MPI_RANKS); do echo "the suite of transports, $$n ranks"; timeout 300 mpirun --oversubscribe -n $$n $$dir/transport || exit 1; done && \
	go build -tags mpi -o $$dir/example ./examples/mpi && timeout 60 mpirun --oversubscribe -n 3 $$dir/example && rm -r $$dir
	go test -tags mpi -count 1 ./cmd/libvolley
	go test -tags mpi -count 1 -timeout 15m -run '^Test(GroupJob|Job|JobErrors|Jobs|OwnDirectories|Killed|Stopped)$$' ./internal/cli

verify-all: ## transfer matrices of every algorithm, family, field, sources and sinks, and the large claims; about ten minutes
	go test -tags verifyall -run TestVerifyAll -v -timeout 1h ./algo ./group ./internal/claims

TIME = 20m
differential: ## random problems through the library against arithmetic of its own
	go test -run 'TestDifferential$$' -v -timeout 3h -differential.time $(TIME) .

MUTANTS = ./field ./plan ./matrix ./verify ./algo ./sim ./executor
mutation: ## changes in the code that no test notices; some hours, see docs/testing.md
	go run ./internal/mutation $(MUTANTS)

bench: ## of kernels, and against peers; volley bench measures these in turns
	go test -run '^$$' -bench . ./bench ./field ./transport/local

FUZZTIME = 1m
fuzz: ## every fuzz test in turn
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
		echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p || exit 1; done; done
