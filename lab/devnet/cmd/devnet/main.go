// Devnet runs the demo exchange on a chain of its own, and disturbs one that runs:
//
//	devnet                                     run one; --help lists the settings
//	devnet shock --token WETH --percent -20    move a price
//	devnet reorg --depth 3 --style replay      replace blocks
//	devnet stall --seconds 10                  stop the head; devnet resume ends it
package main

import (
	"context"
	"os"
	"strings"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/service"
)

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(devnet.Command(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	service.Main("devnet", devnet.DefaultProcess(), devnet.Serve,
		service.About("devnet runs the demo exchange on a chain of its own. While it runs, devnet "+devnet.Usage+
			" disturbs it."))
}
