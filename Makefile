# The only door. `make help` lists what is behind it.
SHELL        := /bin/bash
.DEFAULT_GOAL := help

DURATION     ?=
PROCESSES    := scanner statevm planner sender
BINARIES     := $(PROCESSES) console keeperctl
LAB          := devnet demo simulator recordings
GOLANGCI     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TEST_TIMEOUT := 25m
# The race detector leaves out the EVM's interpreter and its hash, which are not ours and share nothing: they were most of what every test with a chain cost.
# More of go-ethereum left out makes the detector see races that are none: generic code of the standard library is compiled once for all who use it.
# In GOFLAGS, so that programs that tests build are compiled alike.
UNRACED      := $(foreach p,core/vm crypto/keccak,-gcflags=github.com/ethereum/go-ethereum/$(p)=-race=false)
# At its end a program with the detector waits a second for races of what still runs, which most of these are done in. A tenth is enough for goroutines
# that are left over, and the few tests that must not have any look for them.
GO_TEST      := GOFLAGS="$$GOFLAGS $(strip $(UNRACED))" GORACE="atexit_sleep_ms=100 $$GORACE" go test -race -timeout $(TEST_TIMEOUT)
UNRACED_TESTS := $(addprefix perpkeeper/,lab/devnet/exchange lab/recordings test/arch)
PROPERTIES   := ^Test(RowsSurviveTheDatabase|RowsFollowTheFold|ChangesLeadToTheSnapshot|PartitionsJoinAndLeave|ViewsAreTheFold|StreamsFollowTheFold)
# As many packages at a time as there are processors: tests with a chain keep time. The longest begin first, so that none of them is left to run alone at the end.
PACKAGES     := $(shell getconf _NPROCESSORS_ONLN)
LONGEST      := services/sender services/scanner pkg/pg services/keeperctl services/statevm pkg/pg/txstore

.PHONY: help setup build demo demo-failover sim failover hammer properties test test-kafka e2e upgrade-venue upgrade-test chaos liars liars-short mutants bench bench-peers bench-plots soak kafka-up kafka-down lint fmt vet gen verify size contracts contracts-check compose-check engine-test engine-short engine-clean alerts-check console-test fuzz docker release clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: ## check the toolchain and fetch the modules (demo and test do it themselves)
	@deploy/setup.sh

build: setup ## build every binary into bin/
	@mkdir -p bin
	@echo "building $(BINARIES) $(LAB) (the first build takes some minutes)"
	@for b in $(BINARIES:%=services/%) $(LAB:%=lab/%); do go build -trimpath -o bin/$${b##*/} ./$$b/cmd/$${b##*/} || exit 1; done

demo: build ## watch a keeper execute orders and liquidate positions on embedded parts; DURATION=60s ends by itself
	@bin/demo $(if $(DURATION),--demo.duration=$(DURATION))

demo-failover: build ## kill the Master, then Backup-1, bring them back, restart all: who executed what, and a verdict (8 minutes)
	@bin/demo failover

# Compiler, linker and tests collect garbage less often than they would: a tenth of their time. Vetting, which goes through every dependency when nothing is
# cached, is lint's.
# Three are tried without the race detector, for they have no goroutines of their own and take several times the time with it: the devnet's exchange, the
# recordings and the import table. Every other test that has an exchange has it with the detector.
test: setup ## every test that needs no Docker and no real Kafka, with the race detector
	@GOGC=300 $(GO_TEST) -vet=off -p $(PACKAGES) \
		$$({ printf 'perpkeeper/%s\n' $(LONGEST); go list ./... || echo not-listed; } | awk '!listed[$$0]++' | grep -vx $(addprefix -e ,$(UNRACED_TESTS)))
	@GOGC=300 go test -timeout $(TEST_TIMEOUT) -vet=off $(UNRACED_TESTS)

properties: setup ## what every history of the chain has to leave in the database, 100 histories where make test tries 25 or 30 (CASES=n; two minutes)
	@go test -count=1 -timeout 120m -run '$(PROPERTIES)' ./pkg/pg ./services/statevm -rapid.checks=$(or $(CASES),100)

# Four keepers with the race detector are slower than the chain on two processors. What they run has it in make test.
e2e: setup ## the whole pipeline as processes: kills, two of each, reorgs, bad configuration
	@KEEPER_E2E=1 go test -count=1 -v -timeout $(TEST_TIMEOUT) ./test/e2e/...

upgrade-venue: setup ## the exchange's handlers are replaced, and a role taken, under three running keepers (two minutes)
	@KEEPER_UPGRADE_VENUE=1 go test -count=1 -v -timeout $(TEST_TIMEOUT) -run 'TestVenueUpgrade' ./test/e2e

upgrade-test: setup ## processes of an earlier build replaced one after the other while jobs flow; another layout of the state (UPGRADE_FROM=tag or commit)
	@KEEPER_UPGRADE_FROM=$(or $(UPGRADE_FROM),$(shell git describe --tags --abbrev=0 2>/dev/null || echo HEAD~40)) \
		go test -count=1 -v -timeout 60m -run 'Upgrade' ./test/e2e

test-kafka: setup ## the bus suite and the main road on a real Apache Kafka (needs Java 17 and Maven)
	@test/kafka/kafka.sh up $(or $(BROKERS),1)
	@eval "$$(test/kafka/kafka.sh env)" && $(GO_TEST) -count=1 ./pkg/kafka/bus/... ./test/kafka/... && \
		$(GO_TEST) -count=1 -v -run 'TestMainRoad' ./test/e2e; \
		status=$$?; test/kafka/kafka.sh down; exit $$status

chaos: setup ## kill scanner and statevm 200 times at labelled points; freeze them (KILLS=n)
	@KEEPER_LONG=1 KEEPER_KILLS=$(or $(KILLS),200) go test -count=1 -v -timeout 90m ./test/chaos

liars: setup ## one of three endpoints, or price sources, lies: every lie, fastest and slowest, always and at times; then one of two (an hour)
	@KEEPER_LIARS=full go test -count=1 -v -timeout 150m ./test/liars

liars-short: setup ## the same for the lies that say most, told by the fastest, always (3 minutes)
	@KEEPER_LIARS=short go test -count=1 -v -timeout 30m ./test/liars

sim: setup ## every scenario of three keepers in virtual time, 20 seeds each
	@GOGC=300 KEEPER_LONG=1 go test -count=1 -v -timeout 60m -run TestScenarios ./lab/simulator

failover: setup ## the first six scenarios with real processes, 300 jobs each, and the chain's word on them (half an hour)
	@KEEPER_FAILOVER=1 go test -count=1 -v -timeout 90m ./test/failover

hammer: setup ## three senders on one signer, frozen, killed and cut off, for about a minute (JOBS=n)
	@KEEPER_HAMMER=$(or $(JOBS),2000) go test -count=1 -v -timeout 30m -run 'TestSenders$$' ./test/hammer

mutants: setup ## remove one guard of the sender at a time, in a copy, and see the suite turn red
	@test/mutants/mutants.sh

bench: setup ## every benchmark behind a figure of docs/performance.md; on a quiet machine, some minutes
	@go test -run '^$$' -bench 'DecodeLogs' ./pkg/evm
	@go test -run '^$$' -bench 'DecodeLog$$|Transactions' ./pkg/gmx
	@go test -run '^$$' -bench . ./pkg/perp
	@go test -run '^$$' -bench . -timeout 30m ./pkg/risk/liquidation
	@go test -run '^$$' -bench 'Burst' ./services/planner
	@go test -run '^$$' -bench 'Backfill' ./services/scanner
	@go test -run '^$$' -bench . -timeout 30m ./test/bench
	@go test -run '^$$' -bench . ./pkg/ttl
	@go test -run '^$$' -bench Pages -benchtime 40x ./services/console/web

# Both peers are downloaded into .cache: the Go modules of one, the npm packages of the other.
bench-peers: setup ## beside OP's transaction manager and Ponder, which are downloaded for it (needs Node; ten minutes; on a quiet machine)
	@cd test/bench/peers/txmgr && go build -o "$(CURDIR)/.cache/peers/txmgr" .
	@KEEPER_TXMGR="$(CURDIR)/.cache/peers/txmgr" go test -count=1 -v -timeout 20m -run 'TestTxmgr$$' ./test/hammer
	@mkdir -p .cache/peers && cp -r test/bench/peers/ponder .cache/peers/ && cd .cache/peers/ponder && npm install --silent --no-audit
	@KEEPER_PONDER="$(CURDIR)/.cache/peers/ponder" go test -count=1 -v -timeout 20m -run 'TestPonder$$' ./test/bench

bench-plots: ## draw the pictures of docs/performance.md from the raw results beside them (needs gnuplot)
	@command -v gnuplot >/dev/null || { echo "gnuplot is missing (Debian: gnuplot-nox)"; exit 1; }
	@for plot in docs/performance/*.gnuplot; do echo "$$plot"; gnuplot "$$plot" || exit 1; done

soak: setup ## a whole keeper under 20 times the demo's load: nothing may grow after the warm-up (LENGTH=8h of the chain; SPEED=12 has blocks 12 times as often; 12 GB of disk)
	@KEEPER_SOAK=$(or $(LENGTH),8h) KEEPER_SOAK_SPEED=$(or $(SPEED),1) KEEPER_SOAK_LOAD=$(or $(LOAD),20) \
		KEEPER_RESULTS="$(CURDIR)/docs/performance" go test -count=1 -v -timeout 0 -run 'TestSoak$$' ./test/bench

kafka-up: ## start a real Apache Kafka (BROKERS=1 or 3)
	@test/kafka/kafka.sh up $(or $(BROKERS),1)

kafka-down: ## stop it and delete its data
	@test/kafka/kafka.sh down

gen: build ## write what is generated: docs/topics.md, docs/metrics.md, docs/keeperctl.md, docs/requirements.md, the wire schema's Go code (needs protoc)
	@docs/generate.sh
	@if command -v protoc >/dev/null; then \
		GOBIN=$(CURDIR)/.cache/bin go install google.golang.org/protobuf/cmd/protoc-gen-go && \
		PATH=$(CURDIR)/.cache/bin:$$PATH protoc -Ipkg/kafka/wire/wirepb --go_out=pkg/kafka/wire/wirepb --go_opt=paths=source_relative wire.proto; \
	else echo "protoc is not installed: pkg/kafka/wire/wirepb was left as it is"; fi

verify: build contracts-check ## fail if anything generated is not what its source says
	@docs/generate.sh --check

size: build ## count lines, rooms, settings, metrics, alerts and words; fail where a count has grown (test/size/ceilings)
	@test/size/size.sh

contracts: ## compile the devnet's contracts (needs Node)
	@cd lab/devnet/contracts && npm ci --silent && node build.mjs

contracts-check: ## fail if the committed ABI and bytecode are not those of the sources (needs Node)
	@cd lab/devnet/contracts && npm ci --silent && node build.mjs --check

fuzz: setup ## fuzz every decoder for FUZZTIME each
	@for target in $$(grep -rl '^func Fuzz' --include=*_test.go . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -ho '^func Fuzz[A-Za-z]*' $$target/*_test.go | cut -c6-); do \
			echo "fuzzing $$f in $$target"; go test $$target -run '^$$' -fuzz "^$$f\$$" -fuzztime $(or $(FUZZTIME),20s) || exit 1; done; done

compose-check: setup ## load the compose file with every profile, without an engine
	@go test -count=1 ./test/compose

engine-test: setup ## a region on a Docker engine of its own, without a registry: root, Debian; half an hour (LEGS="region scale")
	@test/engine/run.sh $(LEGS)

engine-short: setup ## the short form: a region, scaled, two kills (10 minutes); left out, and said so, where no engine can run
	@test/engine/run.sh short || { status=$$?; [ $$status = 77 ] && echo "=== THE ENGINE TEST IS LEFT OUT: this machine cannot run a Docker engine (see above)"; }

engine-clean: ## end that engine and remove its images, volumes and logs
	@test/engine/run.sh clean

console-test: setup ## the console in Chromium beside the demo's keepers, then its pages with 100 000 positions; writes docs/console/*.png (4 minutes); left out, and said so, without Chromium
	@test/console/console.sh || { status=$$?; [ $$status = 77 ] && echo "=== THE CONSOLE TEST IS LEFT OUT: there is no Chromium here (see above)"; }

alerts-check: ## test the alert rules with promtool, and Alertmanager's configuration with amtool
	@deploy/setup.sh monitoring
	@promtool check config deploy/compose/prometheus/prometheus.yml
	@promtool test rules deploy/compose/prometheus/rules/tests/*.yml
	@amtool check-config deploy/compose/alertmanager/alertmanager.yml

docker: ## build the images: perpkeeper, and perpkeeper-devnet for the demo profile
	@for target in keeper devnet; do \
		tag=perpkeeper; test $$target = keeper || tag=perpkeeper-$$target; \
		docker build -t $$tag --target $$target --build-arg VERSION="$$(git describe --always --dirty)" \
			--build-arg REVISION="$$(git rev-parse HEAD)" . || exit 1; \
	done

release: setup ## archives of the programs for Linux, checksums and a bill of materials, in dist/ (VERSION=v0.1.0)
	@deploy/release.sh "$(VERSION)"

lint: ## formatting, vet, and the linters of .golangci.yaml
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	@go vet ./...
	@go run $(GOLANGCI) run ./...

fmt: ## gofmt everything
	@git ls-files '*.go' | xargs gofmt -w

clean: ## remove what the targets made
	@rm -rf bin dist .cache .demo
