package devnet

import (
	"context"
	"encoding/json"
	"net/http"

	"perpkeeper/pkg/service"
)

// Serve is the process: it brings up a devnet, leaves the deployment record where it was told, and serves it at
// /v1/deployment.
func Serve(sh *service.Shell, p Process) error {
	d, err := Start(sh.Context(), p.Devnet, sh.Log)
	if err != nil {
		return err
	}
	sh.Go("devnet", func(context.Context) error { return d.Wait() })
	sh.Handle("GET /v1/deployment", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.record.Load()) // The client may have gone; nothing is lost with it.
	}))
	if p.Devnet.Out == "" {
		return nil
	}
	if err := d.record.Load().write(p.Devnet.Out); err != nil {
		return err
	}
	sh.Log.Info().Str("file", p.Devnet.Out).Msg("deployment record written")
	return nil
}
