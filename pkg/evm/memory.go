package evm

import (
	"fmt"
	"sync"

	"perpkeeper/pkg/chain"
)

// Source names an endpoint: its address with the secrets masked, numbered where two look alike. Empty is nobody.
type Source string

// Part is a part of a block that endpoints serve.
type Part int

// The parts.
const (
	PartHeader   Part = iota // announced, or read with its transactions
	PartLogs                 // read by Logs
	PartReceipts             // read by Receipts
	parts
)

// purpose is what an endpoint is excluded for that served a part wrongly.
func (p Part) purpose() Purpose { return [parts]Purpose{Everything, ForLogs, ForReceipts}[p] }

// memory knows which endpoint served which part of the blocks last read, and the headers that were announced.
type memory struct {
	mu     sync.Mutex
	served map[chain.Hash]*remembrance
	order  [remembered]chain.Hash // a ring
	next   int
}

// remembrance is what is known of a block.
type remembrance struct {
	by     [parts]*endpoint
	header *Header // nil if it was not announced
}

// remembered is of how many blocks: some minutes of BSC.
const remembered = 1024

// serve notes who served a part. Of a header the first one stays: it has had the block for longest.
func (m *memory) serve(block chain.Hash, part Part, e *endpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(block)
	if part != PartHeader || known.by[PartHeader] == nil {
		known.by[part] = e
	}
}

// announce notes a header and who was the first to announce it.
func (m *memory) announce(header Header, e *endpoint) {
	m.serve(header.Hash, PartHeader, e)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(header.Hash).header = &header
}

// of is what is known of a block, from now on if nothing was. The mutex is held.
func (m *memory) of(block chain.Hash) *remembrance {
	if m.served == nil {
		m.served = map[chain.Hash]*remembrance{}
	}
	known := m.served[block]
	if known == nil {
		delete(m.served, m.order[m.next])
		m.order[m.next] = block
		m.next = (m.next + 1) % remembered
		known = &remembrance{}
		m.served[block] = known
	}
	return known
}

// server returns who served a part, or nil.
func (m *memory) server(block chain.Hash, part Part) *endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.served[block]; known != nil {
		return known.by[part]
	}
	return nil
}

// Announced returns the header of a block that an endpoint has announced lately.
func (c *Client) Announced(block chain.Hash) (header Header, known bool) {
	m := &c.pool.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.served[block]; at != nil && at.header != nil {
		return *at.header, true
	}
	return Header{}, false
}

// ServedBy returns the endpoint that served a part of a block to this client last, of a header the one that served it
// first. It is empty for blocks that are not remembered: the last thousand are.
func (c *Client) ServedBy(block chain.Hash, part Part) Source {
	if e := c.pool.memory.server(block, part); e != nil {
		return e.name
	}
	return ""
}

// Suspect reports that what an endpoint served is wrong or not complete, as the caller has found out by other means. It
// is no longer asked for that part until a cool-down is over, and returned. Nothing happens where the block is not
// remembered.
func (c *Client) Suspect(block chain.Hash, part Part, reason string) Source {
	e := c.pool.memory.server(block, part)
	if e == nil {
		return ""
	}
	e.bar(part.purpose(), ReasonSuspected, fmt.Sprintf("block %s: %s", block, reason))
	return e.name
}

// Elsewhere returns a reader that asks no endpoint of the given names: for a second opinion on what they served. Its
// reads fail with NoEndpoint(err) where no other is configured. Empty names leave out nobody.
func (c *Client) Elsewhere(than ...Source) Reader {
	return Reader{pool: c.pool, without: than}
}
