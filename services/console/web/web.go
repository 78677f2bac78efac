package web

import (
	"context"
	"embed"
	"io/fs"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/tier"
	"perpkeeper/services/console/exposure"
	"perpkeeper/services/console/signin"
)

// Deps are the dependencies of the pages.
type Deps struct {
	DB        *pg.DB
	Kafka     *bus.Client
	Node      Node // nil where no endpoint is configured: what needs the chain says so
	Names     *naming.Names
	Authority *signin.Authority
	Keeper    wire.Config
	Tier      tier.Config
	Signers   []chain.Address // this keeper's own, beside those that the database knows
	Rules     due.Rules
	// PriceMaxAge is the age of reports that are judged with.
	PriceMaxAge time.Duration
	// VolatilityWindow is over how long the movement of prices is looked at (LIQ-1).
	VolatilityWindow time.Duration
	Processes        []status.Address
	// TLS is true when browsers come by https, to this process or to a proxy before it.
	TLS bool
	// Proxies are those whose X-Forwarded-For is believed.
	Proxies []netip.Prefix
	Log     zerolog.Logger
	Now     func() time.Time
}

// Node is what is asked of the chain.
type Node interface {
	Head(ctx context.Context) (chain.BlockRef, error)
	Finalized(ctx context.Context) (chain.BlockRef, error)
	Balance(ctx context.Context, account chain.Address) (chain.Uint, error)
	GasPrice(ctx context.Context) (uint64, error)
	Call(ctx context.Context, contract chain.Address, data []byte, block chain.Hash) ([]byte, error)
}

// console is the handler.
type console struct {
	Deps

	looks looks
	near  *exposure.Follower
	hour  atomic.Pointer[past]

	pages []page
	shown templates
}

//go:embed static
var static embed.FS

// New makes the handler of all pages. What it has running ends with ctx.
func New(ctx context.Context, d Deps) (http.Handler, error) {
	c := &console{Deps: d}
	c.near = &exposure.Follower{DB: d.DB, Moment: c.present, Most: listLimit, Now: d.Now}
	c.pages = c.allPages()
	var err error
	if c.shown, err = parseTemplates(c.functions()); err != nil {
		return nil, err
	}
	go c.remember(ctx)
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.StripPrefix("/static/", cached(http.FileServerFS(files))))
	mux.HandleFunc("GET /signin", c.signInPage)
	mux.HandleFunc("POST /signin", c.signIn)
	mux.HandleFunc("POST /signout", c.authenticated(signin.Viewer, c.signOut))
	mux.HandleFunc("GET /act", c.authenticated(signin.Operator, c.confirm))
	mux.HandleFunc("POST /act", c.authenticated(signin.Operator, c.perform))
	for _, p := range c.pages {
		mux.HandleFunc("GET "+p.path, c.authenticated(signin.Viewer, func(w http.ResponseWriter, r *http.Request,
			s signin.Session) {
			c.servePage(w, r, s, p)
		}))
	}
	return c.secured(http.NewCrossOriginProtection().Handler(mux)), nil
}

// letters are the dead letters.
func (c *console) letters() deadletter.Topic {
	return deadletter.Topic{Client: c.Kafka, State: c.DB, Keeper: c.Keeper}
}

// policy is what a browser may do with a page of the console.
var policy = strings.Join([]string{
	"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
	"form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
}, "; ")

// secured adds what every answer carries.
func (c *console) secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		if c.TLS {
			h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
		}
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		next.ServeHTTP(w, r)
	})
}

// cached lets browsers keep files for an hour: they are part of the program.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		next.ServeHTTP(w, r)
	})
}
