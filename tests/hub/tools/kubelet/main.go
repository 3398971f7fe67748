// Command kubelet plays the streaming half of a kubelet for pods that exist only in the API: exec,
// attach, port-forward and container logs at the kubelet's own paths (kubernetes
// pkg/kubelet/server/server.go), with the kubelet's own stream handlers, so that what reaches it
// has the real protocol on the wire.
//
// A "container" is a directory of this machine, <root>/<namespace>/<pod>: commands run there, and
// the file <container>.log in it is the container's log. It listens on loopback and authenticates
// nobody: a test tool only.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"
	"k8s.io/apimachinery/pkg/types"
	remotecommandconsts "k8s.io/apimachinery/pkg/util/remotecommand"
	client "k8s.io/client-go/tools/remotecommand"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
	"k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idleTimeout    = 10 * time.Minute
	commandTimeout = 5 * time.Minute        // an abandoned command must not outlive a test run by much
	logPoll        = 20 * time.Millisecond  // how often a followed log is looked at
	outputGrace    = 500 * time.Millisecond // for output still held by a grandchild when the command has ended
)

// The forwarded ports, by their names in /etc/services: what each does with a stream.
const (
	portEcho    = 7  // sends back what it gets
	portDiscard = 9  // swallows everything, then answers "<bytes> <sha256>"
	portChargen = 19 // reads "<bytes>\n", then sends that many bytes
)

type node struct{ root string }

func (n node) dir(namespace, pod string) (string, error) {
	dir := filepath.Join(n.root, filepath.Base(namespace), filepath.Base(pod))
	return dir, os.MkdirAll(dir, 0o755)
}

// === exec and attach ===

// The stream handlers pass one pod name along; it carries the namespace too, as in "namespace/pod".
func (n node) ExecInContainer(ctx context.Context, pod string, _ types.UID, _ string, command []string,
	in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan client.TerminalSize, _ time.Duration) error {
	namespace, name, _ := strings.Cut(pod, "/")
	dir, err := n.dir(namespace, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, outputGrace
	if tty {
		err = runTerminal(cmd, in, out, resize)
	} else {
		err = runPipes(cmd, in, out, errs)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// runPipes does not use cmd.Stdin: Wait would then also wait for the client to close its side.
func runPipes(cmd *exec.Cmd, in io.Reader, out, errs io.WriteCloser) error {
	if out != nil {
		cmd.Stdout = out
	}
	if errs != nil {
		cmd.Stderr = errs
	}
	if in != nil {
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			defer stdin.Close()
			_, _ = io.Copy(stdin, in)
		}()
	}
	return cmd.Run()
}

func runTerminal(cmd *exec.Cmd, in io.Reader, out io.WriteCloser, resize <-chan client.TerminalSize) error {
	terminal, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	defer terminal.Close()
	go func() {
		for size := range resize {
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	// Ends with EIO when the last holder of the other end is gone, so nothing written before is
	// lost.
	_, _ = io.Copy(out, terminal)
	return cmd.Wait()
}

// AttachContainer attaches to the one program every container runs: it greets on both outputs, then
// repeats its input.
func (n node) AttachContainer(ctx context.Context, pod string, uid types.UID, container string,
	in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan client.TerminalSize) error {
	program := []string{"sh", "-c", `echo "attached to $1"; echo "warnings of $1" >&2; exec cat`, "sh", container}
	return n.ExecInContainer(ctx, pod, uid, container, program, in, out, errs, tty, resize, 0)
}

// === port-forward ===

func (n node) PortForward(_ context.Context, _ string, _ types.UID, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	switch port {
	case portEcho:
		_, err := io.Copy(stream, stream)
		return err
	case portDiscard:
		hash := sha256.New()
		count, err := io.Copy(hash, stream)
		fmt.Fprintf(stream, "%d %x\n", count, hash.Sum(nil))
		return err
	case portChargen:
		var count int64
		if _, err := fmt.Fscanf(stream, "%d\n", &count); err != nil {
			return err
		}
		_, err := io.CopyN(stream, pattern{}, count)
		return err
	}
	return fmt.Errorf("nothing listens on port %d", port)
}

// pattern reads as a for ever repeated 0..=250: a period that no buffer size shares.
type pattern struct{}

func (pattern) Read(buffer []byte) (int, error) {
	count := len(buffer) / 251 * 251
	if count == 0 {
		count = len(buffer)
	}
	for i := range count {
		buffer[i] = byte(i % 251)
	}
	return count, nil
}

// === logs ===

func (n node) logs(w http.ResponseWriter, r *http.Request) {
	dir, err := n.dir(r.PathValue("namespace"), r.PathValue("pod"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	file, err := os.OpenFile(filepath.Join(dir, filepath.Base(r.PathValue("container"))+".log"), os.O_RDONLY|os.O_CREATE, 0o644)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer file.Close()
	if tail, err := strconv.Atoi(r.FormValue("tailLines")); err == nil {
		text, _ := io.ReadAll(file)
		lines := strings.SplitAfter(string(text), "\n")
		if last := len(lines) - 1; lines[last] == "" {
			lines = lines[:last]
		}
		_, _ = io.WriteString(w, strings.Join(lines[max(0, len(lines)-tail):], ""))
	}
	follow := r.FormValue("follow") == "true"
	for {
		if _, err := io.Copy(w, file); err != nil || !follow {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(logPoll):
		}
	}
}

// === serving ===

func (n node) stream(serve func(http.ResponseWriter, *http.Request, string, *remotecommand.Options)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		serve(w, r, r.PathValue("namespace")+"/"+r.PathValue("pod"), options)
	}
}

func (n node) exec(w http.ResponseWriter, r *http.Request, pod string, options *remotecommand.Options) {
	remotecommand.ServeExec(w, r, n, pod, "", r.PathValue("container"), r.Form["command"], options, idleTimeout,
		remotecommandconsts.DefaultStreamCreationTimeout, remotecommandconsts.SupportedStreamingProtocols)
}

func (n node) attach(w http.ResponseWriter, r *http.Request, pod string, options *remotecommand.Options) {
	remotecommand.ServeAttach(w, r, n, pod, "", r.PathValue("container"), options, idleTimeout,
		remotecommandconsts.DefaultStreamCreationTimeout, remotecommandconsts.SupportedStreamingProtocols)
}

func (n node) forward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, n, r.PathValue("pod"), "", options, idleTimeout,
		remotecommandconsts.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:10250", "address to serve on")
	certificate := flag.String("tls-cert-file", "", "PEM certificate")
	key := flag.String("tls-private-key-file", "", "PEM private key")
	root := flag.String("root", "", "directory under which the containers' directories are made")
	flag.Parse()
	n := node{root: *root}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.stream(n.exec))
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", n.stream(n.attach))
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.forward)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.logs)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}
