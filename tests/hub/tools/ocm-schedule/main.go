// Times Open Cluster Management's choice of clusters: for one Placement, among some clusters,
// beside some decisions.
//
//	ocm-schedule SECONDS FILE
//
// The file has all of them, as JSON. For that time one choice follows the other, on one processor.
// The output is JSON, too: how many choices there were, what they took together, and what they
// chose, best first.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	listersv1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1"
	listersv1alpha1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1alpha1"
	listersv1beta1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"open-cluster-management.io/ocm/pkg/placement/controllers/metrics"
	"open-cluster-management.io/ocm/pkg/placement/controllers/scheduling"
)

// Choices between two looks at the clock.
const atOnce = 20

type input struct {
	Placement clusterv1beta1.Placement            `json:"placement"`
	Clusters  []*clusterv1.ManagedCluster         `json:"clusters"`
	Decisions []*clusterv1beta1.PlacementDecision `json:"decisions"`
}

type output struct {
	Choices     uint64   `json:"choices"`
	Nanoseconds int64    `json:"nanoseconds"`
	Allocations uint64   `json:"allocations"`
	Chosen      []string `json:"chosen"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ocm-schedule:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: ocm-schedule SECONDS FILE")
	}
	seconds, err := strconv.ParseFloat(arguments[0], 64)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(arguments[1])
	if err != nil {
		return err
	}
	var in input
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	scheduler, err := newScheduler(&in)
	if err != nil {
		return err
	}
	out, err := measure(scheduler, &in, seconds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// Reads from memory, as the controllers do.
func newScheduler(in *input) (scheduling.Scheduler, error) {
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	decisions, clusters := index(), index()
	for _, decision := range in.Decisions {
		if err := decisions.Add(decision); err != nil {
			return nil, err
		}
	}
	for _, cluster := range in.Clusters {
		if err := clusters.Add(cluster); err != nil {
			return nil, err
		}
	}
	return scheduling.NewPluginScheduler(scheduling.NewSchedulerHandler(
		nil,
		listersv1beta1.NewPlacementDecisionLister(decisions),
		listersv1alpha1.NewAddOnPlacementScoreLister(index()),
		listersv1.NewManagedClusterLister(clusters),
		nil,
		metrics.NewScheduleMetrics(clock.RealClock{}),
	)), nil
}

func measure(scheduler scheduling.Scheduler, in *input, seconds float64) (*output, error) {
	chosen, err := choose(scheduler, in)
	if err != nil {
		return nil, err
	}
	out := &output{Chosen: chosen}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, begin := spent(), time.Now()
	for time.Since(begin).Seconds() < seconds {
		for range atOnce {
			if _, err := choose(scheduler, in); err != nil {
				return nil, err
			}
		}
		out.Choices += atOnce
	}
	out.Nanoseconds = spent() - used
	runtime.ReadMemStats(&after)
	out.Allocations = after.Mallocs - before.Mallocs
	return out, nil
}

func choose(scheduler scheduling.Scheduler, in *input) ([]string, error) {
	result, status := scheduler.Schedule(context.Background(), &in.Placement, in.Clusters)
	if status.IsError() {
		return nil, errors.New(status.Message())
	}
	decisions := result.Decisions()
	names := make([]string, 0, len(decisions))
	for _, cluster := range decisions {
		names = append(names, cluster.Name)
	}
	return names, nil
}

// The CPU time of this process.
func spent() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
