package sources

import (
	"net/http"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
	"strings"
	"testing"
)

// config is that of one source.
func config(t source.Table) Config {
	cfg := DefaultConfig()
	t.Name, cfg.Sources = "s", []source.Table{t}
	return cfg
}

// No failure shows the token in the address.
func TestFailuresKeepTheSecret(t *testing.T) {
	s := sourcetest.Serve(t,
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
	for _, kind := range []string{"devnet", "gmx"} {
		table := source.Table{Kind: kind, URL: sourcetest.At(s), Provider: sourcetest.Provider}
		members, closeIdle := Open(config(table), nil, chain.Address{})
		err := members[0].Source.Run(t.Context(), nil)
		if err == nil || strings.Contains(err.Error(), "7f3a9c") || !strings.Contains(err.Error(), "HTTP 500") {
			t.Errorf("%s, a service that fails: %v", kind, err)
		}
		closeIdle()
	}
	elsewhere := sourcetest.Serve(t,
		func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s elsewhere", r.URL) })
	redirect := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL,
			http.StatusFound)
	})
	table := source.Table{Kind: "gmx", URL: sourcetest.At(redirect), Provider: sourcetest.Provider}
	members, closeIdle := Open(config(table), nil, chain.Address{})
	defer closeIdle()
	if err := members[0].Source.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "HTTP 302") {
		t.Errorf("a service that sends us elsewhere: %v", err)
	}
	s.Close()
	members, closeIdle = Open(config(source.Table{Kind: "devnet", URL: sourcetest.At(s)}), nil, chain.Address{})
	defer closeIdle()
	if err := members[0].Source.Run(t.Context(), nil); err == nil || strings.Contains(err.Error(), "7f3a9c") {
		t.Errorf("a service that is gone: %v", err)
	}
}
