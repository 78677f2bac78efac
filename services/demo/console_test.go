package demo

import "testing"

func TestTheNewestLinkOfALog(t *testing.T) {
	log := `{"level":"info","message":"serving http"}
{"level":"warn","link":"http://127.0.0.1:1/welcome?token=old"}
no JSON
{"level":"warn","link":"http://127.0.0.1:1/welcome?token=new"}
{"level":"info","message":"later"}
`
	if got := linkIn([]byte(log)); got != "http://127.0.0.1:1/welcome?token=new" {
		t.Error(got)
	}
	if got := linkIn(nil); got != "" {
		t.Error(got)
	}
}
