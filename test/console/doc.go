// Package console plays an operator's day in a real browser. The demo's three keepers work on a chain of their own,
// with traders; Chromium opens the Master's console, signs in, reads every page, does every action, and is refused what
// it may not. `make console-test` says what it needs.
package console
