// What enforces NetworkPolicies on a node of the lab: kube-router's part for these, and nothing
// else of it (routes are bridges here, Services kube-proxy's).
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// How often everything is written anew, beside at each change.
const period = time.Minute

// Of heartbeats, which nobody looks at.
const heartbeats = 16

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func handle(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	_, err := informer.AddEventHandler(handler)
	check(err)
}

func main() {
	config := options.NewKubeRouterConfig()
	kubeconfig := flag.String("kubeconfig", "", "of the cluster")
	flag.StringVar(&config.HostnameOverride, "node", "", "name of this node")
	services := flag.String("services", "", "addresses of Services, as CIDR")
	flag.Parse()
	config.ClusterIPCIDRs = []string{*services}
	config.IPTablesSyncPeriod = period
	config.EnableIPv4 = true

	settings, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	client, err := kubernetes.NewForConfig(settings)
	check(err)
	stop := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	tables, sets, err := netpol.NewIPTablesHandlers(config)
	check(err)
	var lock sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &lock, tables, sets)
	check(err)
	handle(pods, controller.PodEventHandler)
	handle(namespaces, controller.NamespaceEventHandler)
	handle(policies, controller.NetworkPolicyEventHandler)

	beats := make(chan *healthcheck.ControllerHeartbeat, heartbeats)
	go func() {
		for range beats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	go controller.Run(beats, stop, &running)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
	close(stop)
	running.Wait()
}
