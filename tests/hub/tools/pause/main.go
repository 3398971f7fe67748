// Command pause does nothing, as the first process of a pod's sandbox and as a workload, and ends
// when it is told to. With "tick" it prints a number, one more each time, ten times a second: who
// follows its log sees whether any is missing.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	var ticks <-chan time.Time // of nil there is none
	if len(os.Args) > 1 && os.Args[1] == "tick" {
		ticks = time.Tick(100 * time.Millisecond)
	}
	for number := 0; ; number++ {
		select {
		case <-ended:
			return
		case <-ticks:
			fmt.Println(number)
		}
	}
}
