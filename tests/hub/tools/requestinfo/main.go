// Says what kube-apiserver makes of requests: for each HTTP/1.1 head on standard input, a line of
// JSON on standard output.
//
// A head ends with a blank line. net/http parses it and RequestInfoFactory reads it, as in a
// kube-apiserver (k8s.io/apiserver/pkg/server/config.go, NewRequestInfoResolver).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

type answer struct {
	Error         string `json:"error,omitempty"`
	Resource      bool   `json:"resource"`
	Path          string `json:"path"`
	Verb          string `json:"verb"`
	Group         string `json:"group"`
	Version       string `json:"version"`
	Namespace     string `json:"namespace"`
	Kind          string `json:"kind"`
	Subresource   string `json:"subresource"`
	Name          string `json:"name"`
	FieldSelector string `json:"fieldSelector"`
	LabelSelector string `json:"labelSelector"`
}

func main() {
	factory := &request.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	in := bufio.NewReader(os.Stdin)
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return
		}
		asked, err := http.ReadRequest(in)
		if err != nil {
			// Where the next head begins is unknown now.
			fmt.Fprintln(os.Stderr, err)
			out.Flush()
			os.Exit(1)
		}
		encoder.Encode(read(factory, asked))
	}
}

func read(factory *request.RequestInfoFactory, asked *http.Request) answer {
	info, err := factory.NewRequestInfo(asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{
		Resource:      info.IsResourceRequest,
		Path:          info.Path,
		Verb:          info.Verb,
		Group:         info.APIGroup,
		Version:       info.APIVersion,
		Namespace:     info.Namespace,
		Kind:          info.Resource,
		Subresource:   info.Subresource,
		Name:          info.Name,
		FieldSelector: info.FieldSelector,
		LabelSelector: info.LabelSelector,
	}
}
