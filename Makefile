# The only door. `make help` lists what is behind it.
SHELL        := /bin/bash
.DEFAULT_GOAL := help

DURATION     ?=
PROCESSES    := scanner statevm planner sender
BINARIES     := $(PROCESSES) keeperctl devnet demo
GOLANGCI     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TEST_TIMEOUT := 9m
GO_TEST      := go test -race -timeout $(TEST_TIMEOUT)

.PHONY: help setup build demo test test-kafka e2e kafka-up kafka-down lint fmt vet gen verify contracts contracts-check compose-check fuzz docker clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: ## check the toolchain and fetch the modules (demo and test do it themselves)
	@deploy/setup.sh

build: setup ## build every binary into bin/
	@mkdir -p bin
	@echo "building $(BINARIES) (the first build takes some minutes)"
	@for b in $(BINARIES); do go build -trimpath -o bin/$$b ./services/$$b/cmd/$$b || exit 1; done

demo: build ## watch a keeper execute orders and liquidate positions on embedded parts; DURATION=60s ends by itself
	@bin/demo $(if $(DURATION),--demo.duration=$(DURATION))

test: setup ## every test that needs no Docker and no real Kafka, with the race detector
	@$(GO_TEST) ./...

e2e: setup ## the whole pipeline as processes: kills, two of each, reorgs, bad configuration
	@PERPKEEPER_E2E=1 $(GO_TEST) -timeout 30m -count=1 -v ./test/e2e/...

kafka-up: ## start a real Apache Kafka (BROKERS=1 or 3)
	@test/kafka/kafka.sh up $(or $(BROKERS),1)

kafka-down: ## stop it and delete its data
	@test/kafka/kafka.sh down

lint: ## formatting, vet, and the linters of .golangci.yaml
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	@go vet ./...
	@go run $(GOLANGCI) run ./...

fmt: ## gofmt everything
	@git ls-files '*.go' | xargs gofmt -w

clean: ## remove what the targets made
	@rm -rf bin .cache .demo
