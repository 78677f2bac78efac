//go:build browser

package web_test

import (
	"github.com/chromedp/cdproto/runtime"
)

// awaitPromise has a script's answer be what its promise comes to.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
