# Everything starts here: `make help` lists what there is.
SHELL := bash
.SHELLFLAGS := -eo pipefail -c
.DEFAULT_GOAL := help

# One set of flags for all builds and tests, so that they share one build cache.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

version     = $(shell git describe --tags --dirty 2>/dev/null || echo v0.0.0-dev+$$(git rev-parse --short HEAD 2>/dev/null))
module_ver  = $(shell go list -m -f '{{.Version}}' $(1))
kubernetes  = $(call module_ver,k8s.io/kubernetes)
ldflags     = -s -w -X github.com/polder-kaas/polder/internal/program/buildinfo.version=$(version)
# Kubernetes, and the kubectl in polder, report v0.0.0 unless the linker tells them what they are.
kube_pkg    = k8s.io/component-base/version
kube_flags  = -X $(kube_pkg).gitVersion=$(kubernetes) -X $(kube_pkg).gitMajor=$(word 1,$(subst ., ,$(kubernetes:v%=%))) -X $(kube_pkg).gitMinor=$(word 2,$(subst ., ,$(kubernetes)))

manifests   := internal/plane/capi/manifests/generated
# All that a program may be made of, files that are embedded too; test/build checks that none is missing.
sources      = $(wildcard $(shell git ls-files -co --exclude-standard ':!docs/*.md' ':!test' ':!bench' ':!.ci' ':!terraform' ':!*/testdata/*' ':(exclude,glob)*.md'))

# Packages that link the whole of Kubernetes have no unit tests; tests under test/ run the built binary.
heavy       := github.com/polder-kaas/polder/(cmd/polderd|internal/daemon|internal/plane|internal/plane/(apiserver|kubecontrollers)|internal/providers/local/(boot|component))$$
light        = $(shell go list ./... | grep -Ev '$(heavy)' | grep -Ev '/(test/fault|bench/(backup|local|operator|plane|service|stack|workloadcluster))')

# Tests without the race detector: boot, which links kubeadm, and those that render charts in a child, whose memory and time are limited;
# stack/schema, where CEL runs until a budget is used up, forty times longer with the detector; conformance, which gives servers that
# deviate little time; and confine, whose processes see no libraries they could be linked with.
renders     := %/local/confine %/polder/conformance %/stack/schema %/polder/stack %/stack/render %/stack/lint %/stack/dependency %/polder/stacks %/internal/cli/stackauthor %/releases/rendering %/test/instant

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: build
build: bin/polderd bin/polder ## Build bin/polder and bin/polderd

bin/polderd: $(manifests)/index.json $(sources)
	@hack/build $@ ./cmd/polderd '$(ldflags) $(kube_flags)'

bin/polder: $(sources)
	@hack/build $@ ./cmd/polder '$(ldflags) $(kube_flags)'

# The provider that docs/provider-author writes; tests run it.
bin/example-provider: $(sources)
	@hack/build $@ ./docs/provider-author/example '-s -w'

# The same binary with a switch to make its components fail; only tests use it.
bin/polderd-fault: bin/polderd
	@hack/build $@ ./cmd/polderd '$(ldflags) $(kube_flags) -checklinkname=0' -tags fault

# The version before this one; upgrades begin with it.
bin/previous/polderd: test/fault/previous
	@hack/build-previous

$(manifests)/index.json: go.mod $(wildcard hack/capimanifests/*.go)
	@go mod download sigs.k8s.io/cluster-api
	@go run ./hack/capimanifests "$$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)" $(call module_ver,sigs.k8s.io/cluster-api) $(manifests)

.PHONY: generate
generate: bin/controller-gen ## Renew generated files
	@bin/controller-gen object paths=./api/...
	@bin/controller-gen crd paths=./api/... output:crd:dir=config/crd
	@$(MAKE) --no-print-directory build
	@hack/generate

.PHONY: verify
verify: generate ## Check that generated files and go.mod are up to date
	@go mod tidy -diff
	@for p in polder polderd; do GOOS=darwin go build -o /dev/null ./cmd/$$p || exit 1; done # polderd only says that it needs Linux
	@git diff --exit-code -- api config docs/reference || { echo 'Generated files are out of date; run: make generate, and commit the result.'; exit 1; }

# The linter remembers findings by the path of the checkout they were found in, so each checkout has a cache of its own.
.PHONY: lint
lint: bin/golangci-lint $(manifests)/index.json ## Check style and imports
	@GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint-cache bin/golangci-lint run ./...

bin/golangci-lint: hack/tools/go.mod
	@echo 'Compiling the linter; this takes minutes the first time.'
	@cd hack/tools && go build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# In a module of its own: it wants other versions of what the linter is made of.
.PHONY: vulncheck
vulncheck: bin/govulncheck $(manifests)/index.json ## Look for known vulnerabilities in what is imported
	@hack/vulncheck/run

bin/govulncheck: hack/vulncheck/go.mod
	@cd hack/vulncheck && go build -o ../../$@ golang.org/x/vuln/cmd/govulncheck

bin/controller-gen: hack/tools/go.mod
	@cd hack/tools && go build -o ../../$@ sigs.k8s.io/controller-tools/cmd/controller-gen

.PHONY: test
test: build bin/polderd-fault bin/example-provider bin/issuer/node ## Run all tests but the long fault matrix
	@CGO_ENABLED=1 go test -race -p 2 -timeout 20m $(filter-out %/test/plane %/test/local %/test/stack %/test/reconcile %/test/operator %/test/customer %/test/provider %/test/service $(renders),$(light))
	@go test -p 2 -timeout 10m ./internal/providers/local/boot $(filter $(renders),$(light))
	@CGO_ENABLED=1 go test -race -p 2 -parallel 4 -timeout 30m ./test/plane ./test/local ./test/stack ./test/operator ./test/customer # each alone uses 1.1 to 1.5 of two cores
	@go test -p 1 -parallel 6 -timeout 15m ./test/reconcile ./test/provider ./test/service

.PHONY: fault
fault: build bin/polderd-fault bin/previous/polderd bin/strace bin/clusterctl ## Run the long fault matrix
	@hack/check-dist
	@go test -count=1 -timeout 120m -v ./test/fault/...
	@CGO_ENABLED=1 go test -race -count=1 -parallel 4 -timeout 60m -v ./test/reconcile -reconcile.full
	@go test -tags fault -count=1 -timeout 60m -v -run '^TestFault' ./test/local ./test/stack ./test/operator
	@go test -count=1 -timeout 60m -v -run ManyClusters ./test/provider -clusters 200 -check-memory
	@go test -tags clusterctl -count=1 -timeout 60m -v -run '^TestMove' ./test/provider
	@go test -count=1 -timeout 60m -v -run SilentClusters ./test/provider -silent 20 -beside 80 -check-times
	@go test -count=1 -timeout 60m -v -run 'TestNonInterference|TestRESTWatchLong|TestLargeTenant|TestPausedClusters' ./test/service -interference 10000 -rest.watch 11m -large 10000 -deleted 1000
	@go test -count=1 -timeout 60m -v -run 'DeletedAtAnyMoment|Transitions' ./test/provider -clusters 1000 -transitions 100

# Faults of one plane at random, one every half minute, on many clusters; SOAK=24h for a release. It prints its seed; SEED= repeats it.
.PHONY: soak
soak: build ## Run random faults for two hours, or as long as SOAK says, and look for growth
	@go test -tags soak -count=1 -timeout 0 -v -run '^TestSoak$$' ./test/provider -check-memory -soak $(or $(SOAK),2h) -seed $(or $(SEED),0)

# An issuer of tokens, for tests of login.
bin/issuer/node: hack/issuer/install hack/issuer/issuer.mjs hack/issuer/package-lock.json
	@hack/issuer/install bin/issuer

# Cluster API's own program, in a module of its own: it wants other versions of what Polder is made of.
bin/clusterctl: hack/clusterctl/go.mod
	@cd hack/clusterctl && go build -o ../../$@ sigs.k8s.io/cluster-api/cmd/clusterctl

# What tests run the Terraform provider with, in a module of its own for the same reason.
bin/tofu: hack/opentofu/go.mod
	@echo 'Compiling OpenTofu; it takes minutes the first time.'
	@cd hack/opentofu && go build -o ../../$@ github.com/opentofu/opentofu/cmd/tofu

bin/terraform-provider-polder: $(wildcard $(shell git ls-files -co --exclude-standard terraform client api internal/files/certificate))
	@cd terraform && go build -ldflags '-s -w -X main.version=$(version)' -o ../$@ .

.PHONY: test-terraform
test-terraform: build bin/tofu bin/terraform-provider-polder ## Test the Terraform provider with OpenTofu and a plane
	@cd terraform && go test -count=1 -timeout 30m ./...

# For tests that let system calls fail; taken from the distribution if it is not installed, without root.
bin/strace: hack/strace
	@hack/strace $@

.PHONY: dist
dist: build sbom ## Put both programs and what they are made of into dist/, with checksums that KEY=, an SSH key, signs
	@hack/dist '$(KEY)' dist bin/polder bin/polderd bin/polder.cdx.json bin/polderd.cdx.json

.PHONY: reproducible
reproducible: $(manifests)/index.json ## Build both programs twice, in two directories, and compare them; takes a full compilation
	@hack/reproducible '$(ldflags) $(kube_flags)'

.PHONY: sbom
sbom: build ## Write what both programs are made of to bin/*.cdx.json (CycloneDX), and check licences
	@for p in polder polderd; do GOMODCACHE=$$(go env GOMODCACHE) go run ./hack/sbom cyclonedx bin/$$p >bin/$$p.cdx.json || exit 1; done

.PHONY: seeded
seeded: $(manifests)/index.json ## Put bugs into copies of the source, and expect tests to find each
	@go run ./hack/seeded

.PHONY: fuzz
fuzz: build bin/polderd-fault ## Fuzz every reader of outside bytes; FUZZTIME=10m for longer
	@hack/fuzz $(or $(FUZZTIME),30s)
	@go test -count=1 -v -run TestRESTFuzz ./test/service -rest.fuzz 20000

.PHONY: bench-plane
bench-plane: build ## Compare polderd with the same parts as separate processes
	@bench/plane/run

.PHONY: bench-local
bench-local: build bin/polderd-fault ## Measure local clusters: time to ready, upgrade, delete, memory
	@hack/build bin/bench/local ./bench/local '-s -w'
	@bin/bench/local

.PHONY: bench-stack
bench-stack: build ## Measure lint, build, render and pull of stacks, beside Helm
	@cd bench/stack/helm && go build -o ../../../bin/bench/helm .
	@hack/build bin/bench/stack ./bench/stack '-s -w'
	@bin/bench/stack

.PHONY: bench-operator
bench-operator: build ## Measure the stack operator: time to ready, add-ons, what is written when nothing has changed
	@hack/build bin/bench/operator ./bench/operator '-s -w'
	@bin/bench/operator

.PHONY: bench-workloadcluster
bench-workloadcluster: build ## Measure WorkloadClusters: beside bare Clusters, many of them, and their list
	@hack/build bin/bench/workloadcluster ./bench/workloadcluster '-s -w'
	@bin/bench/workloadcluster

.PHONY: bench-service
bench-service: build ## Measure the REST API beside the plane's own Kubernetes API
	@hack/build bin/bench/service ./bench/service '-s -w'
	@bin/bench/service

.PHONY: bench-backup
bench-backup: build ## Measure backup and restore of a plane with 1 GiB, and what clients notice meanwhile
	@hack/build bin/bench/backup ./bench/backup '-s -w'
	@bin/bench/backup

.PHONY: conformance
conformance: build bin/conformance/e2e.test ## Run Kubernetes' own conformance tests that need no real container, on local clusters
	@hack/build bin/conformance/run ./hack/conformance '-s -w'
	@bin/conformance/run

bin/conformance/e2e.test: test/conformance/go.mod test/conformance/build
	@test/conformance/build $@

.PHONY: currency
currency: ## Tell which dependencies and offered versions of Kubernetes are behind; needs the module proxy
	@hack/build bin/currency ./hack/currency '-s -w'
	@bin/currency

.PHONY: demo
demo: build ## Run Polder's main job from an empty directory
	@hack/demo

.PHONY: clean
clean: ## Remove everything that was built
	@rm -rf bin $(manifests)
