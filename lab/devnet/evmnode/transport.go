package evmnode

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gorilla/websocket"
)

const maxMessage = 5 << 20 // Bytes of one request, as in a node.

// serveHTTP is the one door: WebSocket upgrades and single requests come through the same listener, and faults strike
// here.
func (n *Node) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if websocket.IsWebSocketUpgrade(r) {
		n.serveSocket(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		http.Error(w, "reading the request: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault, req := n.faults.strike(body)
	if !pause(r.Context().Done(), fault.delay()) {
		return
	}
	switch {
	case fault.DropConnection:
		panic(http.ErrAbortHandler) // The server's own way to close without an answer.
	case fault.DropReply:
		n.server.ServeHTTP(nowhere{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case fault.Error != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(req.errorReply(fault))
	default:
		n.server.ServeHTTP(w, r)
	}
}

// pause waits for d and reports whether it was not cut short.
func pause(cut <-chan struct{}, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-cut:
		return false
	}
}

// nowhere is a response that is thrown away.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}

// sockets are the open WebSocket connections.
type sockets struct {
	mu      sync.Mutex
	open    map[*socket]struct{}
	serving sync.WaitGroup
}

func (s *sockets) add(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*socket]struct{}{}
	}
	s.open[c] = struct{}{}
}

func (s *sockets) remove(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *sockets) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// DropConnections closes every WebSocket connection, as a node does when it restarts.
func (n *Node) DropConnections() { n.sockets.closeAll() }

// A development chain has nothing to protect.
var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

func (n *Node) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // The client has got its answer.
	}
	conn.SetReadLimit(maxMessage)
	s := &socket{conn: conn, faults: &n.faults, inbox: make(chan []byte), closed: make(chan struct{})}
	n.sockets.serving.Add(1)
	defer n.sockets.serving.Done()
	n.sockets.add(s)
	defer n.sockets.remove(s)
	var wg sync.WaitGroup
	wg.Go(s.receive)
	n.server.ServeCodec(rpc.NewCodec(s), 0) // Returns when the connection is closed.
	_ = s.Close()
	wg.Wait()
}

// socket makes a byte stream of the messages of a WebSocket connection, for the codec, and lets faults strike in
// between.
type socket struct {
	conn   *websocket.Conn
	faults *faults
	inbox  chan []byte // Messages that go to the server.
	rest   []byte      // Unread part of the newest message.

	closing sync.Once
	closed  chan struct{}
	writing sync.Mutex // The connection takes one writer at a time; guards mute.
	mute    bool       // The next answer closes the connection instead.
}

// receive reads messages until the connection ends. A delayed message does not hold up those behind it.
func (s *socket) receive() {
	var delayed sync.WaitGroup
	defer delayed.Wait()
	defer func() { _ = s.Close() }()
	for {
		_, raw, err := s.conn.ReadMessage()
		if err != nil {
			return
		}
		fault, req := s.faults.strike(raw)
		if fault.DelayMS == 0 {
			s.deliver(raw, req, fault)
			continue
		}
		delayed.Go(func() {
			if pause(s.closed, fault.delay()) {
				s.deliver(raw, req, fault)
			}
		})
	}
}

func (s *socket) deliver(raw []byte, req request, fault Fault) {
	switch {
	case fault.DropConnection:
		_ = s.Close()
		return
	case fault.Error != "":
		_, _ = s.Write(req.errorReply(fault)) // A failed write shows as a failed read.
		return
	case fault.DropReply:
		s.writing.Lock() // No answer, nor anything else, is written between the request's start and the muting.
		defer s.writing.Unlock()
		s.mute = true
	}
	select {
	case s.inbox <- raw:
	case <-s.closed:
	}
}

// Read implements io.Reader for the codec.
func (s *socket) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case s.rest = <-s.inbox:
		case <-s.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Write implements io.Writer: one call of the codec is one message.
func (s *socket) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.mute {
		_ = s.Close()
		return 0, io.ErrClosedPipe
	}
	return len(p), s.conn.WriteMessage(websocket.TextMessage, bytes.TrimSuffix(p, []byte("\n")))
}

// SetWriteDeadline implements rpc.Conn. Injected replies are written beside the codec's.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.conn.SetWriteDeadline(t)
}

// Close implements io.Closer. Closing twice does nothing.
func (s *socket) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.closed)
		err = s.conn.Close()
	})
	return err
}
