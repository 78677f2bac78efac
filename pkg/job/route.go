package job

import (
	"bytes"
	"slices"

	"perpkeeper/pkg/chain"
)

// Route chooses the signer of an account's jobs by rendezvous hashing: each signer's weight is keccak256(account ‖
// signer) and the highest wins. Adding or removing a signer moves only the accounts that it gains or loses. It returns
// the zero address when there is no signer.
func Route(account chain.Address, signers []chain.Address) chain.Address {
	var best chain.Address
	var weight chain.Hash
	for _, s := range signers {
		w := chain.Keccak256(account[:], s[:])
		if best.IsZero() || bytes.Compare(w[:], weight[:]) > 0 {
			best, weight = s, w
		}
	}
	return best
}

// Signers are the accounts of a keeper, and which lanes each of them takes. The zero value has none.
type Signers struct{ takers map[Lane][]chain.Address }

// NewSigners makes the signers of a keeper. Whoever is not among the bound takes every lane. The cleanup is for those
// that take the maintenance: it takes the same role.
func NewSigners(all []chain.Address, bound map[chain.Address][]Lane) Signers {
	s := Signers{takers: map[Lane][]chain.Address{}}
	for _, signer := range all {
		lanes, isBound := bound[signer]
		for _, lane := range Lanes() {
			if !isBound || slices.Contains(lanes, lane) ||
				lane == CleanupLane && slices.Contains(lanes, MaintenanceLane) {
				s.takers[lane] = append(s.takers[lane], signer)
			}
		}
	}
	return s
}

// Unserved lists the lanes that no signer takes, the most urgent first. Jobs of such a lane would be nobody's.
func (s Signers) Unserved() (lanes []Lane) {
	for _, lane := range Lanes() {
		if len(s.takers[lane]) == 0 {
			lanes = append(lanes, lane)
		}
	}
	return lanes
}

// Route chooses the signer of an account's job, among those that take the lane of its kind, see [Route]. All jobs of an
// account in one lane have the same signer. Signers that are out are passed by, while another one takes the lane.
func (s Signers) Route(kind Kind, account chain.Address, out ...chain.Address) chain.Address {
	takers := s.takers[kind.Lane()]
	if len(out) > 0 {
		here := slices.DeleteFunc(slices.Clone(takers),
			func(one chain.Address) bool { return slices.Contains(out, one) })
		if len(here) > 0 {
			takers = here
		}
	}
	return Route(account, takers)
}
