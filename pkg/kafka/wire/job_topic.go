package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire/wirepb"
)

// Price is one report of a price source. Data is opaque: the contract's oracle verifies it.
type Price struct {
	Token    chain.Address
	Provider chain.Address
	Data     []byte
	// Min and Max are USD with 30 decimals per smallest unit of the token.
	Min, Max chain.Uint
	// TimeMs is the source's own time. The contract sees whole seconds of it.
	TimeMs     uint64
	Source     string
	ReceivedMs uint64
}

// Job is a job on its way from planner to sender.
type Job struct{ job.Job }

// Result is the record of the end of one attempt of a job.
type Result struct{ job.Result }

// DecodeJob reads a record of the job topic. It returns an error for whatever is no sound job, also for a record that
// has no place in that topic.
func DecodeJob(r Record) (job.Job, error) {
	m, _, err := Decode(r)
	if err != nil {
		return job.Job{}, err
	}
	message, is := m.(Job)
	if !is {
		return job.Job{}, fmt.Errorf("a %T has no place among jobs (partition %d, offset %d)", m, r.Partition, r.Offset)
	}
	return message.Job, message.Validate()
}

func (Price) kind() Kind  { return KindPrice }
func (Job) kind() Kind    { return KindJob }
func (Result) kind() Kind { return KindResult }

func (m Price) marshal() proto.Message {
	return &wirepb.Price{
		Token: m.Token[:], Provider: m.Provider[:], Data: m.Data, Min: uintOut(m.Min), Max: uintOut(m.Max),
		TimeMs: m.TimeMs,
		Source: m.Source, ReceivedMs: m.ReceivedMs,
	}
}

func (m Job) marshal() proto.Message {
	p := &wirepb.Job{
		Id: m.ID, Kind: string(m.Kind), Key: m.Key[:], Account: m.Account[:], Market: m.Market[:],
		Collateral: m.Collateral[:],
		IsLong:     m.IsLong, SizeDeltaUsd: uintOut(m.SizeDeltaUsd), DueSinceMs: m.DueSinceMs, ExpiresMs: m.ExpiresMs,
		Class: uint32(m.Class),
		Ratio: uintOut(m.Ratio), Signer: m.Signer[:], Frozen: m.Frozen,
		Evidence: &wirepb.Evidence{
			Block: blockOut(m.Evidence.Block), Generation: m.Evidence.Generation, Reports: m.Evidence.Reports,
			Reason: m.Evidence.Reason,
		},
	}
	for _, t := range m.Tokens {
		p.Tokens = append(p.Tokens, t[:])
	}
	return p
}

func (m Result) marshal() proto.Message {
	return &wirepb.Result{
		JobId: m.JobID, Attempt: m.Attempt, Kind: string(m.Kind), Key: m.Key[:], Account: m.Account[:],
		Outcome: string(m.Outcome), Reason: m.Reason,
		TxHash: m.TxHash[:], Signer: m.Signer[:], Nonce: m.Nonce, Block: blockOut(m.Block), GasUsed: m.GasUsed,
		GasPrice:   m.GasPrice,
		DueSinceMs: m.DueSinceMs, AtMs: m.AtMs, Market: m.Market[:], Collateral: m.Collateral[:], IsLong: m.IsLong,
		GivenUp:    m.GivenUp,
		Settlement: settlementOut(m.Settlement),
	}
}

func decodePrice(f *fields, p *wirepb.Price) Message {
	return Price{
		Token: f.address(p.GetToken()), Provider: f.address(p.GetProvider()), Data: p.GetData(),
		Min: f.uint(p.GetMin()), Max: f.uint(p.GetMax()),
		TimeMs: p.GetTimeMs(), Source: p.GetSource(), ReceivedMs: p.GetReceivedMs(),
	}
}

func decodeJob(f *fields, p *wirepb.Job) Message {
	j := job.Job{
		ID: p.GetId(), Kind: job.Kind(p.GetKind()), Key: f.hash(p.GetKey()), Account: f.address(p.GetAccount()),
		Market:     f.address(p.GetMarket()),
		Collateral: f.address(p.GetCollateral()), IsLong: p.GetIsLong(), SizeDeltaUsd: f.uint(p.GetSizeDeltaUsd()),
		DueSinceMs: p.GetDueSinceMs(),
		ExpiresMs:  p.GetExpiresMs(), Class: job.Class(p.GetClass()), Ratio: f.uint(p.GetRatio()),
		Signer: f.address(p.GetSigner()),
		Frozen: p.GetFrozen(),
		Evidence: job.Evidence{
			Block: f.block(p.GetEvidence().GetBlock()), Generation: p.GetEvidence().GetGeneration(),
			Reports: p.GetEvidence().GetReports(),
			Reason:  p.GetEvidence().GetReason(),
		},
	}
	for _, t := range p.GetTokens() {
		j.Tokens = append(j.Tokens, f.address(t))
	}
	return Job{j}
}

func decodeResult(f *fields, p *wirepb.Result) Message {
	return Result{job.Result{
		JobID: p.GetJobId(), Attempt: p.GetAttempt(), Kind: job.Kind(p.GetKind()), Key: f.hash(p.GetKey()),
		Account: f.address(p.GetAccount()),
		Outcome: job.Outcome(p.GetOutcome()), Reason: p.GetReason(), TxHash: f.hash(p.GetTxHash()),
		Signer: f.address(p.GetSigner()),
		Nonce:  p.GetNonce(), Block: f.block(p.GetBlock()), GasUsed: p.GetGasUsed(), GasPrice: p.GetGasPrice(),
		DueSinceMs: p.GetDueSinceMs(),
		AtMs:       p.GetAtMs(), Market: f.address(p.GetMarket()), Collateral: f.address(p.GetCollateral()),
		IsLong:  p.GetIsLong(),
		GivenUp: p.GetGivenUp(), Settlement: decodeSettlement(f, p.GetSettlement()),
	}}
}
