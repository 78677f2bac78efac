// Package web is what operators see of a keeper in a browser: pages that the server writes, and updates of their tables
// as they change.
//
// # Guaranteed
//
// A page shows nothing to who is not signed in, and does nothing for a role that may not. Every change is confirmed on
// a page that shows what will change, carries the session's own token, and stands in the console's record before it is
// done and after. Text from outside is written by html/template alone. No page has script or style in it: the policy
// that browsers are given allows files of this process and nothing else, and nothing is fetched from anywhere else.
//
// However many browsers look at a page, its stores are asked once a moment. A page whose store is away
// says so in its place.
//
// # Not guaranteed
//
// That what is shown is of now: it is of the moment that stands beside it.
package web
