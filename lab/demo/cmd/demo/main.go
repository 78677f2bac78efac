// Demo runs keepers on embedded parts and shows them at work.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/mattn/go-isatty"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/service"
)

func main() {
	defaults := demo.DefaultConfig()
	if slices.Contains(os.Args[1:], "failover") {
		defaults = demo.DefaultFailover()
	}
	service.Tool("demo", "[failover]", defaults, func(sh *service.Shell, cfg demo.Config, args []string) error {
		screen := demo.Screen{Out: os.Stdout, Terminal: isatty.IsTerminal(os.Stdout.Fd())}
		switch {
		case len(args) == 0:
			return demo.Run(sh.Context(), cfg, sh.Log, screen)
		case len(args) == 1 && args[0] == "failover":
			return demo.Failover(sh.Context(), cfg, sh.Log, screen)
		}
		return fmt.Errorf("%q is nothing that the demo plays (there is failover, and nothing for keepers at work)",
			args[0])
	},
		service.About("demo starts a chain, an exchange with traders, and keepers with a broker and a Postgres each "+
			"on this machine, and shows what they do. "+
			"demo failover lets three keepers fail and return, and says what the chain shows of it."))
}
