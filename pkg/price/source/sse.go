package source

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
)

// Listen opens the stream of events (server-sent, each an id and a line of data) that follow the one with lastID, or
// the newest on, and hands each on until the stream breaks or ctx ends. Whether a stream that says nothing is to be
// left the one knows who runs the source.
func (c *Client) Listen(ctx context.Context, lastID string, on func(id, data string) error, path ...string) error {
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	if lastID != "" {
		header.Set("Last-Event-ID", lastID)
	}
	answer, err := c.do(ctx, header, nil, nil, path...)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // nothing depends on how a read connection closes
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, MaxAnswer)
	id, data := "", ""
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); {
		case field == "id":
			id = value
		case field == "data":
			data = value
		case field == "" && data != "":
			if err := on(id, data); err != nil {
				return err
			}
			data = ""
		}
	}
	return cmp.Or(context.Cause(ctx), lines.Err(), errors.New("the stream ended"))
}
