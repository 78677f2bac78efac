package evm

import (
	"fmt"
	"sync"

	"perpkeeper/pkg/chain"
)

// Source names an endpoint: its address with the secrets masked, numbered where two look alike. Empty is nobody.
type Source string

// memory knows which endpoint was the first to have the blocks last read, and the headers that were announced.
type memory struct {
	mu     sync.Mutex
	served map[chain.Hash]*remembrance
	order  [remembered]chain.Hash // a ring
	next   int
}

// remembrance is what is known of a block.
type remembrance struct {
	by     *endpoint
	header *Header // nil if it was not announced
}

// remembered is of how many blocks: some minutes of BSC.
const remembered = 1024

// serve notes who served a block. The first one stays: it has had the block for longest.
func (m *memory) serve(block chain.Hash, e *endpoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.of(block); known.by == nil {
		known.by = e
	}
}

// announce notes a header and who was the first to announce it.
func (m *memory) announce(header Header, e *endpoint) {
	m.serve(header.Hash, e)
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

// server returns who served a block, or nil.
func (m *memory) server(block chain.Hash) *endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.served[block]; known != nil {
		return known.by
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

// ServedBy returns the endpoint that was the first to serve a block to this client. It is empty for blocks that are not
// remembered: the last thousand are.
func (c *Client) ServedBy(block chain.Hash) Source {
	if e := c.pool.memory.server(block); e != nil {
		return e.name
	}
	return ""
}

// Suspect reports that a block is not the chain's, as the caller has found out by other means. Who served it is asked
// nothing until a cool-down is over. Nothing happens where the block is not remembered.
func (c *Client) Suspect(block chain.Hash, reason string) {
	if e := c.pool.memory.server(block); e != nil {
		e.distrust(Everything, ReasonSuspected, fmt.Sprintf("block %s: %s", block, reason))
	}
}

// Excluding returns a reader that asks no endpoint of the given names: for a second opinion on what they served. Its
// reads fail where no other is configured. Empty names leave out nobody.
func (c *Client) Excluding(than ...Source) Reader {
	return Reader{pool: c.pool, without: than}
}
