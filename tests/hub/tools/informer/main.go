// Command informer keeps a client-go informer on one cluster-scoped resource of the gateway's group
// and tells what is in its cache, so that a test can compare the cache with the truth.
//
// Everything is client-go's own default: the reflector, its back-off, and the initial list as a
// stream of events (feature WatchListClient). It prints one line of JSON for each line on standard
// input, and ends at end of file.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// What the cache has of one object.
type entry struct {
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Endpoint        string `json:"endpoint"`
}

// What is printed for a line of input.
type report struct {
	Synced    bool             `json:"synced"`
	Items     map[string]entry `json:"items"`
	Lists     int64            `json:"lists"`     // requests for a list
	Streams   int64            `json:"streams"`   // watches that asked for the initial events
	Watches   int64            `json:"watches"`   // watches from a resource version on
	Expired   int64            `json:"expired"`   // answers or events with code 410
	Failures  int64            `json:"failures"`  // answers with another code of 400 or more
	Bookmarks int64            `json:"bookmarks"` // bookmark events
	Updated   int64            `json:"updated"`   // events from the cache to a handler: the resource version changed
	Deleted   int64            `json:"deleted"`   // events from the cache to a handler: the object is gone
}

var counts struct{ lists, streams, watches, expired, failures, bookmarks, updated, deleted atomic.Int64 }

// A transport that counts what the reflector asks and what it is told.
type counter struct{ next http.RoundTripper }

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		counts.streams.Add(1)
	case query.Has("watch"):
		counts.watches.Add(1)
	default:
		counts.lists.Add(1)
	}
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode == http.StatusGone:
		counts.expired.Add(1)
	case response.StatusCode >= 400:
		counts.failures.Add(1)
	case query.Has("watch"):
		response.Body = &events{ReadCloser: response.Body}
	}
	return response, nil
}

// The body of a watch; counts bookmarks and expirations, which the reflector keeps to itself. An
// event is one line.
type events struct {
	io.ReadCloser
	line strings.Builder
}

func (e *events) Read(buffer []byte) (int, error) {
	count, err := e.ReadCloser.Read(buffer)
	for _, char := range buffer[:count] {
		if char != '\n' {
			e.line.WriteByte(char)
			continue
		}
		switch line := e.line.String(); {
		case strings.Contains(line, `"type":"BOOKMARK"`):
			counts.bookmarks.Add(1)
		case strings.Contains(line, `"type":"ERROR"`) && strings.Contains(line, `"code":410`):
			counts.expired.Add(1)
		}
		e.line.Reset()
	}
	return count, err
}

func handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, new any) {
			if old.(*unstructured.Unstructured).GetResourceVersion() != new.(*unstructured.Unstructured).GetResourceVersion() {
				counts.updated.Add(1)
			}
		},
		DeleteFunc: func(any) { counts.deleted.Add(1) },
	}
}

// Where a ClusterGateway, and where a VirtualCluster, has its endpoint.
func endpoint(object *unstructured.Unstructured) string {
	if text, found, _ := unstructured.NestedString(object.Object, "spec", "access", "endpoint", "const", "address"); found {
		return text
	}
	text, _, _ := unstructured.NestedString(object.Object, "spec", "endpoint")
	return text
}

func look(informer cache.SharedIndexInformer) report {
	items := map[string]entry{}
	for _, item := range informer.GetStore().List() {
		object := item.(*unstructured.Unstructured)
		items[object.GetName()] = entry{string(object.GetUID()), object.GetResourceVersion(), endpoint(object)}
	}
	return report{
		Synced: informer.HasSynced(), Items: items,
		Lists: counts.lists.Load(), Streams: counts.streams.Load(), Watches: counts.watches.Load(),
		Expired: counts.expired.Load(), Failures: counts.failures.Load(), Bookmarks: counts.bookmarks.Load(),
		Updated: counts.updated.Load(), Deleted: counts.deleted.Load(),
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "whom to ask, as whom")
	resource := flag.String("resource", "clustergateways", "plural name in cluster.core.oam.dev/v1alpha1")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	kind := schema.GroupVersionResource{Group: "cluster.core.oam.dev", Version: "v1alpha1", Resource: *resource}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0*time.Second).ForResource(kind).Informer()
	if _, err := informer.AddEventHandler(handler()); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go informer.RunWithContext(ctx)

	output := json.NewEncoder(os.Stdout)
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		if err := output.Encode(look(informer)); err != nil {
			log.Fatal(err)
		}
	}
}
