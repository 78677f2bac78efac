package wire

// Claim is the claim in force at a place of a partition of the log topic, as whoever reads it record by record comes to
// know it: the highest epoch whose EPOCH record was read; 0 = none yet. What stands under any other epoch counts for
// nothing. A lower one is that of a scanner that has been replaced. A higher one was never claimed in this partition:
// the topic was made anew, or has lost its end, beneath a scanner that had not noticed.
type Claim uint64

// Counts reports whether a record counts, and takes over the claim that it may be. Records are shown to it in the order
// of their offsets, from the partition's beginning on, or from where the claim in force is known.
func (c *Claim) Counts(m Message, meta Meta) bool {
	epoch, claims := m.(Epoch)
	if !claims {
		return *c > 0 && meta.Epoch == uint64(*c)
	}
	if epoch.Number <= uint64(*c) {
		return false
	}
	*c = Claim(epoch.Number)
	return true
}
