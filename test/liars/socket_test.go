package liars

import (
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// serveSocket passes messages on in both directions, those of the node late and changed.
func (e *endpoint) serveSocket(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	client, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	node, reply, err := websocket.DefaultDialer.DialContext(r.Context(), e.socket, nil)
	if err != nil {
		return
	}
	defer func() { _, _ = node.Close(), reply.Body.Close() }()
	s := socket{endpoint: e, calls: map[string]call{}, late: make(chan frame, 4096)}
	var writing sync.WaitGroup
	writing.Go(func() { s.write(client) })
	go func() { // ends with the client's connection
		defer func() { _ = node.Close() }()
		s.forward(client, node)
	}()
	s.receive(node)
	close(s.late)
	_ = client.Close()
	writing.Wait()
}

// socket is one connection of a client.
type socket struct {
	*endpoint
	late chan frame

	pending sync.Mutex
	calls   map[string]call // not answered yet
}

// frame is a message of the node and when it is to be passed on.
type frame struct {
	due time.Time
	raw []byte
}

// forward passes requests on and takes them down.
func (s *socket) forward(client, node *websocket.Conn) {
	for {
		kind, raw, err := client.ReadMessage()
		if err != nil {
			return
		}
		s.pending.Lock()
		note(s.calls, raw)
		s.pending.Unlock()
		if node.WriteMessage(kind, raw) != nil {
			return
		}
	}
}

// receive reads what the node says until it ends the connection.
func (s *socket) receive(node *websocket.Conn) {
	for {
		_, raw, err := node.ReadMessage()
		if err != nil {
			return
		}
		s.late <- frame{time.Now().Add(s.latency()), raw}
	}
}

// write passes on what the node said when it is due. Messages are late side by side, not one after the other.
func (s *socket) write(client *websocket.Conn) {
	for f := range s.late {
		time.Sleep(time.Until(f.due))
		s.pending.Lock()
		raw := s.rewrite(s.calls, f.raw)
		s.pending.Unlock()
		if client.WriteMessage(websocket.TextMessage, raw) != nil {
			_ = client.Close() // which ends forward, and with it the rest
		}
	}
}
