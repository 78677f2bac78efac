package source

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Event is one server-sent event (WHATWG HTML, section 9.2).
type Event struct {
	ID   string // of the newest event that had one
	Name string
	Data string
}

// events reads a stream of them.
type events struct {
	in     *bufio.Reader
	id     string
	began  bool
	afterR bool // the last line ended with CR: an LF that follows belongs to it
	line   strings.Builder
}

// next returns the next event that has data. An event that the end of the stream cuts off is none.
func (e *events) next() (Event, error) {
	var ev Event
	var data strings.Builder
	some := false
	for {
		line, err := e.readLine()
		if err != nil {
			return Event{}, err
		}
		if line == "" {
			if some {
				ev.ID, ev.Data = e.id, data.String()
				return ev, nil
			}
			ev.Name = ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			if some {
				data.WriteByte('\n')
			}
			some = true
			if data.WriteString(value); data.Len() > MaxAnswer {
				return Event{}, fmt.Errorf("an event is longer than %d bytes", MaxAnswer)
			}
		case "event":
			ev.Name = value
		case "id":
			if !strings.ContainsRune(value, 0) {
				e.id = value
			}
		}
	}
}

// readLine returns a line without its end, which is LF, CR or both.
func (e *events) readLine() (string, error) {
	e.line.Reset()
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' && e.afterR {
			e.afterR = false
			continue
		}
		e.afterR = c == '\r'
		if c == '\n' || c == '\r' {
			break
		}
		if e.line.WriteByte(c); e.line.Len() > MaxAnswer {
			return "", fmt.Errorf("a line is longer than %d bytes", MaxAnswer)
		}
	}
	line := e.line.String()
	if !e.began {
		line, e.began = strings.TrimPrefix(line, "\ufeff"), true
	}
	return line, nil
}

// Listen opens a stream of events and hands each on until the stream breaks or ctx ends. Whether a stream that says
// nothing is to be left the one knows who runs the source.
func (c *Client) Listen(ctx context.Context, lastID string, query url.Values, on func(Event) error,
	path ...string) error {
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	if lastID != "" {
		header.Set("Last-Event-ID", lastID)
	}
	answer, err := c.do(ctx, header, query, nil, path...)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // nothing depends on how a read connection closes
	stream := &events{in: bufio.NewReaderSize(answer.Body, 64<<10), id: lastID}
	for {
		ev, err := stream.next()
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if errors.Is(err, io.EOF) {
			return errors.New("the stream ended")
		}
		if err != nil {
			return err
		}
		if err := on(ev); err != nil {
			return err
		}
	}
}
