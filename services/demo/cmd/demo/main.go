// Demo runs keepers on embedded parts and shows them at work.
package main

import (
	"os"

	"github.com/mattn/go-isatty"

	"perpkeeper/pkg/service"
	"perpkeeper/services/demo"
)

func main() {
	service.Tool("demo", "", demo.DefaultConfig(), func(sh *service.Shell, cfg demo.Config, _ []string) error {
		return demo.Run(sh.Context(), cfg, sh.Log, demo.Screen{Out: os.Stdout, Terminal: isatty.IsTerminal(os.Stdout.Fd())})
	}, service.About("demo starts a chain, an exchange with traders, and keepers with a broker and a Postgres each on this machine, and shows what they do."))
}
