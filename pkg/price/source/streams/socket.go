package streams

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
)

// subscribe reads the WebSocket until it breaks or ctx ends. What was missed comes first: what is pushed meanwhile
// waits in the connection.
func (s *streams) subscribe(ctx context.Context, take price.Take) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("subscribing at %s: %w", s.socket, err)
	}
	defer func() { _ = conn.Close() }() // nothing depends on how a read connection closes
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := s.catchUp(ctx, take, time.Now()); err != nil {
		return s.client.Wrap(err)
	}
	for {
		_, raw, err := conn.ReadMessage()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("reading from %s: %w", s.socket, err)
		}
		reply, err := decodeStreamsReport(raw)
		if err != nil {
			return fmt.Errorf("reading from %s: %w", s.socket, err)
		}
		s.give(take, []streamsReply{reply})
	}
}

func (s *streams) dial(ctx context.Context) (*websocket.Conn, error) {
	address, err := url.Parse(s.socket.Reveal())
	if err != nil {
		return nil, errors.New("not an address")
	}
	address = address.JoinPath("api", "v1", "ws")
	address.RawQuery = url.Values{"feedIDs": {commaSeparated(s.ids)}}.Encode()
	header := http.Header{}
	s.auth.sign(header, http.MethodGet, address.RequestURI(), time.Now())
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: s.timeout,
		ReadBufferSize: 16 << 10}
	//nolint:bodyclose // the dialer has read and closed it
	conn, answer, err := dialer.DialContext(ctx, address.String(), header)
	if err != nil {
		if errors.Is(err, websocket.ErrBadHandshake) && answer != nil {
			return nil, &source.StatusError{Code: answer.StatusCode, Text: answer.Status}
		}
		return nil, err
	}
	conn.SetReadLimit(source.MaxAnswer)
	return conn, nil
}
