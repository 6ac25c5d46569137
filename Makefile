# The two commands of the README: make demo, make test. `make help` lists the rest.
GO      ?= go
STATIC  := CGO_ENABLED=0
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/heddle-stream/heddle/internal/cli.Version=$(VERSION)
SEEDS   ?= 1000
# Without the paths of files, what was compiled in one checkout is used in the next.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)

ARCH    ?= $(shell $(GO) env GOARCH)

.PHONY: help build dist demo test unit lint bench bench-peers bench-tracing bench-yarn bench-kerberos sim machine itest itest-kafka itest-kafka-long itest-yarn itest-yarn-long itest-kerberos itest-kerberos-long itest-net itest-web itest-jaeger needs generate fuzz clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 16

build: ## bin/heddle, static
	$(STATIC) $(GO) build -ldflags '$(LDFLAGS)' -o bin/heddle ./cmd/heddle

dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
dist: ## out/dist: a tarball, a deb and an rpm, for ARCH=amd64 or another
	@rm -rf out/dist && mkdir -p out/dist/root/bin out/dist/root/conf out/dist/root/hadoop
	$(STATIC) GOOS=linux GOARCH=$(ARCH) $(GO) build -ldflags '$(LDFLAGS)' -o out/dist/root/bin/heddle ./cmd/heddle
	$(STATIC) $(GO) run ./packaging/pages out/dist/root
	@cp -r README.md CHANGELOG.md LICENSE docs out/dist/root/
	@cp conf/heddle.yaml out/dist/root/conf/ && cp packaging/hadoop/heddle.sh out/dist/root/hadoop/
	@cd packaging/dist && $(STATIC) $(GO) run . -root ../../out/dist/root -out ../../out/dist -version '$(VERSION)' -arch $(ARCH)

demo: ## the main job on embedded defaults: broker, master, two agents
	@$(STATIC) $(GO) build -ldflags '$(LDFLAGS)' -o bin/heddle ./cmd/heddle
	@./bin/heddle demo $(ARGS)

test: ## all tests: lint, unit tests under the race detector, simulation, integration
	@packaging/ci/test.sh

unit: ## unit tests under the race detector
	$(GO) test -race -timeout 15m ./...

lint: ## gofmt, vet, staticcheck, the project's own rules
	@test -z "$$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test ./internal/lint

bench: ## the exchange beside a raw TCP loop; docs/performance.md explains
	$(STATIC) $(GO) run ./cmd/heddle bench exchange --record-size 8 --duration 5s
	$(STATIC) $(GO) run ./cmd/heddle bench exchange --record-size 100 --duration 5s

bench-peers: ## the exchange's goals beside raw loops and Flink, in turns (JDK 17, Maven, ten quiet minutes); ARGS="-rounds 1" for less
	$(STATIC) $(GO) run ./bench/peers $(ARGS)

bench-yarn: ## a start on YARN beside Flink's on the same cluster, in turns: one of its own, or that of HADOOP_CONF_DIR (JDK 17, Maven, ten quiet minutes); ARGS="-rounds 1" for less
	$(STATIC) $(GO) run ./bench/yarn $(ARGS)

bench-kerberos: ## RPC and HDFS at privacy beside Hadoop's own client, and a secured start beside an insecure one (JDK 17, Maven, five quiet minutes)
	ITEST=kerberos-bench $(GO) test -count=1 -timeout 30m -v -run TestBench ./itest/kerberos

bench-kafka: ## reading and writing Kafka beside other clients and Flink, in turns, on a real broker: every goal (JDK 17, Maven, ten minutes); ARGS="--rounds 1" for less
	$(STATIC) $(GO) run ./bench/kafka --goals $(ARGS)

bench-tracing: ## what following records costs, beside the same source without it; ROUNDS=5 for less
	@bench/tracing.sh

sim: ## the master's control plane in simulation: scripts, and SEEDS=n random clusters full of faults
	$(GO) test -count=1 ./appmaster/slotmgr ./appmaster/slotpool ./appmaster/sched -rapid.checks=$(SEEDS)
	$(GO) test -count=1 ./itest/sim -v -run 'TestSeeds|TestScripts|TestDeterminism|TestMassCancel' -sim.seeds=$(SEEDS)

itest: itest-kafka itest-net itest-yarn itest-web itest-jaeger ## all tests against real services

itest-kafka: ## tests against a real Kafka broker
	ITEST=kafka $(GO) test -count=1 -timeout 20m -v ./itest/kafka

itest-kafka-long: ## tests against a real Kafka cluster of three brokers that restart and die
	ITEST=kafka-long $(GO) test -count=1 -timeout 20m -v ./itest/kafka

itest-yarn: ## tests against a real Hadoop cluster
	ITEST=yarn $(GO) test -count=1 -timeout 25m -v ./itest/yarn

itest-web: ## the dashboard in a real Chromium; screenshots in out/itest/web
	ITEST=web $(GO) test -count=1 -timeout 10m -v ./itest/web

itest-kerberos: ## tests against a real KDC, and a Hadoop cluster and a Kafka broker that demand Kerberos
	ITEST=kerberos $(GO) test -count=1 -timeout 20m -p 1 -v ./itest/kerberos ./itest/kafka

itest-yarn-long: ## tests against a real Hadoop cluster that take their time: 50 applications submitted and ended at different moments; jobs beside a Kafka broker with TLS
	ITEST=yarn-long $(GO) test -count=1 -timeout 30m -v -run "TestRounds|TestKafka" ./itest/yarn

itest-jaeger: ## traces and metrics of a job on two agents in a real Jaeger, judged by promtool too
	ITEST=jaeger $(GO) test -count=1 -timeout 40m -v ./itest/jaeger

itest-kerberos-long: ## jobs that outlive their delegation tokens, Kafka's too, and certificates, on a cluster that encrypts everything; logs collected; masters that fail over, a KDC that is away; encryption zones, erasure coding, quotas
	ITEST=kerberos-long $(GO) test -count=1 -timeout 60m -v ./itest/kerberos

itest-net: ## the exchange between two network namespaces on a bad link (root)
	ITEST=net $(GO) test -count=1 -timeout 10m -v ./itest/net

machine: ## the exchange: a million random steps of its protocol for each of five seeds, 10,000 busy channels
	$(GO) test ./netstack -count=1 -run TestFairness -scale.channels 10000
	for seed in 1 2 3 4 5; do $(GO) test ./netstack -count=1 -run TestMachine -machine.steps 1000000 -machine.seed $$seed || exit 1; done

needs: ## install what the tests need (as root on Debian), or say what to install
	@packaging/ci/needs.sh

generate: ## generated code and documents
	$(GO) generate ./...

fuzz: ## every fuzz target for 200,000 inputs
	@packaging/ci/fuzz.sh 200000x

clean:
	rm -rf bin out
