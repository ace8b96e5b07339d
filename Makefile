GREMLINS = github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The modules beside the product, which go.work ties to it.
MODULES = bench bench/network deploy examples lab

.PHONY: build install test check modules module race mpi wheel sdist python page site browser release verify-all differential mutation bench compare fuzz

build: ## the binaries
	go build ./cmd/volley
	go build ./lab/cmd/volley-lab

PREFIX = /usr/local
DESTDIR =
MPI =
install: ## the binary volley and, where MPI is, libvolley for C and Fortran: make install PREFIX=/usr/local [DESTDIR=] [MPI=none]
	@MPI='$(MPI)' cmd/libvolley/install '$(PREFIX)' '$(DESTDIR)'

test: ## what the README says
	go test ./...

check: test ## what a change needs
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "gofmt would change these"; exit 1; }
	go vet ./... $(MODULES:%=./%/...)
	go run $(STATICCHECK) ./... $(MODULES:%=./%/...)
	go test $(MODULES:%=./%/...)

modules: ## their folders
	@echo $(MODULES)

module: ## gives the module another path, in every import: make module NAME=host/name
	@test -n "$(NAME)" || { echo "no path: make module NAME=host/name"; exit 2; }
	git ls-files '*.go' '*.go.txt' | xargs sed -i -E 's#^(import |\t)([A-Za-z_.]+ )?"volley(/[^"]*)?"$$#\1\2"$(NAME)\3"#'
	git ls-files '*go.mod' | xargs sed -i -E '/=>/!s#(^|\s)volley(/\S*)?( v0\.0\.0)?$$#\1$(NAME)\2\3#; s#(^|\s)volley(/\S*)? =>#\1$(NAME)\2 =>#'
	gofmt -w $$(git ls-files '*.go')

# Of engine and group the race detector leaves out what runs processes, or repeats for long what other tests do. Of
# internal/cli it takes what has goroutines of its own: signals, servers, hosts, sets, bars. TestDifferential runs for long
# what other tests of the root run, too.
PROCESSES = ^Test(.*Crash|DecideHostile|Flips|Losses16|Model|SnapshotsLosses|Overhead|PlacesKept|Python.*)$$
GOROUTINES = ^Test(.*Interrupt.*|Busy|HangUp|Launch(Missing|Progress)|Sets(Lost|Domains)?|Progress(Ranks)?|Meter|Limits|Terminal|Metrics|Group(Errors)?)$$
race: ## the race detector, where goroutines meet
	go test -race -skip '^TestDifferential$$' . ./executor/... ./transport/... ./coded ./collective ./internal/disk/... ./internal/faulty ./internal/delay
	go test -race -p 3 -skip '$(PROCESSES)' ./engine ./group/... ./internal/sets ./internal/ssh ./internal/launch
	go test -race -run '$(GOROUTINES)' ./internal/cli/...
	go test -race ./lab/explore
	go test -race -run '^TestExplore' ./lab/verbs

PYTHON = python3
MPI_RANKS = 1 2 3 5 16
HANGS = 20m
# What has files of its own with the tag, and the tests of internal/cli there, which wait more than they compute.
TAGGED = ./transport/mpi ./internal/cli/... ./cmd/... ./examples/mpi ./bench/network
JOBS = $(shell grep -ho '^func Test[A-Za-z0-9]*' internal/cli/mpi_test.go | cut -c10- | tr '\n' '|')
mpi: export OMPI_ALLOW_RUN_AS_ROOT = 1
mpi: export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
mpi: ## jobs under mpirun, and the library for C; needs Open MPI, pkg-config, gcc, gfortran, and Python with mpi4py, NumPy and pytest
	go vet -tags mpi $(TAGGED)
	go run $(STATICCHECK) -tags mpi $(TAGGED)
	@dir=$$(mktemp -d) && go test -tags mpi -c -o $$dir/transport ./transport/mpi && \
	for n in $(MPI_RANKS); do echo "the suite of transports, $$n ranks"; timeout $(HANGS) mpirun --oversubscribe -n $$n $$dir/transport || exit 1; done && \
	go build -tags mpi -o $$dir/example ./examples/mpi && timeout $(HANGS) mpirun --oversubscribe -n 3 $$dir/example && rm -r $$dir
	go test -tags mpi -count 1 ./cmd/libvolley ./bench/network
	go test -tags mpi -count 1 -run TestFirstMinutes/HPC ./internal/claims -mpi
	@dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && go build -tags mpi -buildmode=c-shared -o $$dir/libvolley.so ./cmd/libvolley && \
	export VOLLEY_LIBRARY=$$dir/libvolley.so PYTHONPATH=$(CURDIR)/python && \
	timeout $(HANGS) mpirun --oversubscribe -n 4 $(PYTHON) -m pytest -q -x -p no:cacheprovider python/tests/test_mpi.py && \
	timeout $(HANGS) examples/solver/survive.py --seed 100 --runs 2 $(PYTHON) examples/mpi4py/train.py ROOT OUT 60 6 && \
	mpicc -O2 -Wall -Werror -I cmd/libvolley -o $$dir/solver examples/solver/solver.c -L $$dir -lvolley -Wl,-rpath,$$dir -lm && \
	timeout $(HANGS) examples/solver/survive.py --seed 100 --runs 2 $$dir/solver ROOT OUT 1024 100 10
	go test -tags mpi -count 1 -parallel 4 -run '^Test($(JOBS)SameResults)$$' ./internal/cli -group.kills 1

# What a package is made of, in $$dir. Its _version.py has the commit, where there is one.
python_sources = cp -r python/volley python/setup.py python/pyproject.toml python/README.md LICENSE $$dir && \
	commit=$$(git rev-parse HEAD 2>/dev/null) && { git diff --quiet HEAD || commit=$$commit.dirty; }; \
	sed -i "s/^__commit__ = \"\"/__commit__ = \"$$commit\"/" $$dir/volley/_version.py

# The binary is static, and so runs on every Linux of its processor.
WHEEL = dist
wheel: ## the Python package with the binary, into WHEEL; needs Python with pip, setuptools and wheel
	@dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && $(python_sources) && \
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $$dir/volley/bin/volley ./cmd/volley && \
	VOLLEY_PLATFORM=$$(go env GOOS)/$$(go env GOARCH) $(PYTHON) -m pip wheel -q --no-build-isolation --no-index --no-deps -w $(WHEEL) $$dir

sdist: ## the sources of the Python package, without the binary, into WHEEL; needs Python with setuptools
	@dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && $(python_sources) && mkdir -p $(WHEEL) && \
	to=$$(cd $(WHEEL) && pwd) && cd $$dir && $(PYTHON) setup.py -q sdist -d $$to

python: ## the Python package: types and tests; needs Python with mypy, pytest, pip, venv, setuptools and wheel
	cd python && $(PYTHON) -m mypy
	@dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && go build -o $$dir/volley ./cmd/volley && cd python && \
	VOLLEY=$$dir/volley $(PYTHON) -m pytest -q -p no:cacheprovider $(PYTEST)

lab/web/node_modules/.package-lock.json: lab/web/package.json lab/web/package-lock.json
	cd lab/web && npm ci --no-audit --no-fund

page: lab/web/node_modules/.package-lock.json ## lab/web/dist, the page of volley-lab explore, from its sources; needs Node.js and npm
	cd lab/web && npm run check && npm run build

# The engine is then this code as WebAssembly, and no server is needed that computes.
site: ## lab/web/site, the page as static files
	rm -rf lab/web/site && cp -r lab/web/dist lab/web/site
	sed -i 's/<meta name="volley-engine" content="http"/<meta name="volley-engine" content="wasm"/' lab/web/site/index.html
	grep -q 'name="volley-engine" content="wasm"' lab/web/site/index.html
	cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" lab/web/site/
	GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w' -o lab/web/site/volley.wasm ./lab/web/wasm
	@echo "$$(gzip -9 -c lab/web/site/volley.wasm | wc -c) bytes of WebAssembly, compressed"

browser: site lab/web/node_modules/.package-lock.json ## the page in real browsers; needs Node.js, npm, Chromium and Firefox
	cd lab/web && npm test

verify-all: ## transfer matrices of every algorithm, family, field, sources and sinks, and the large claims; about an hour
	go test -tags verifyall -run TestVerifyAll -v -timeout 1h ./algo/... ./lab/families ./group/...
	go test -tags verifyall -timeout 1h ./field ./matrix ./sim ./algo/... ./coded ./group/... -skip TestVerifyAll

release: ## archives and packages for other machines, in dist/release; needs zip, and MPI for the one with MPI
	deploy/release

TIME = 20m
differential: ## random problems through the library against arithmetic of its own
	go test -run 'TestDifferential$$' -v -timeout 3h -differential.time $(TIME) .

MUTANTS = ./field ./plan ./matrix ./verify ./algo ./sim ./executor
mutation: ## changes in the code that no test notices; some hours, see docs/testing.md
	for package in $(MUTANTS); do go run $(GREMLINS) unleash $$package --workers 1 --timeout-coefficient 10 || exit; done

bench: ## of kernels, and against peers; bench/cmd/speed measures these in turns
	go test -run '^$$' -bench . ./bench ./field ./transport/local

COMPARE =
compare: ## volley protect and recover beside par2, SnapRAID, zfec, restic, redset and FTI: see bench/compare/build
	@dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && trap "exit 143" INT TERM HUP && bench/compare/build $$dir "$(REDSET)" "$(FTI)" "$(PEERS)" && \
	go build -tags mpi -o $$dir/bin/volley ./cmd/volley && $(PYTHON) bench/compare/compare.py --volley $$dir/bin/volley $(COMPARE) $$dir/bin

FUZZTIME = 1m
fuzz: ## every fuzz test in turn
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
		echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p || exit 1; done; done
