package recordings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// riskCase asks for the verdict on one position, of a block's time and at given prices. The position is named by its
// key or by what the key is made of; what is given twice must agree. Prices are USD per whole token, [min, max] or one
// for both, by the token's symbol or address. Other fields, such as what the chain said, are not read.
type riskCase struct {
	PositionKey     *chain.Hash    `json:"positionKey"`
	Account         *chain.Address `json:"account"`
	Market          *chain.Address `json:"market"`
	CollateralToken *chain.Address `json:"collateralToken"`
	IsLong          *bool          `json:"isLong"`
	// the last block that counts; without it the last one that is not after the time
	AsOfBlock *uint64 `json:"asOfBlock"`
	// Unix seconds to accrue to; without it the time of the last block that counts
	BlockTimestamp *uint64              `json:"blockTimestamp"`
	Prices         map[string]casePrice `json:"prices"`
}

// caseVerdict is what is printed of a case, with the chain's own names. USD have 30 decimals.
type caseVerdict struct {
	PositionKey                 chain.Hash `json:"positionKey"`
	BlockTimestamp              uint64     `json:"blockTimestamp"`
	Liquidatable                bool       `json:"liquidatable"`
	RemainingCollateralUsd      chain.Int  `json:"remainingCollateralUsd"`
	MinCollateralUsd            chain.Uint `json:"minCollateralUsd"`
	MinCollateralUsdForLeverage chain.Uint `json:"minCollateralUsdForLeverage"`
}

// cases are the questions of a file, each answered when the fold has come as far as it asks for.
type cases struct {
	tokens   tokenNames
	asked    []riskCase
	verdicts []caseVerdict
	byBlock  []int // cases with a block, ascending
	byTime   []int // cases with a time alone, ascending
	worth    map[chain.Address]float64
	worthAt  uint64 // the number of logs after which worth was looked up
}

// readCases reads a file of cases: a JSON array of objects.
func readCases(name string, tokens tokenNames) (*cases, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	c := &cases{tokens: tokens}
	if err := json.Unmarshal(text, &c.asked); err != nil {
		return nil, fmt.Errorf("%s is no JSON array of cases: %w", name, err)
	}
	c.verdicts = make([]caseVerdict, len(c.asked))
	for n := range c.asked {
		if err := c.asked[n].complete(); err != nil {
			return nil, fmt.Errorf("%s: case %d: %w", name, n+1, err)
		}
		if c.asked[n].AsOfBlock != nil {
			c.byBlock = append(c.byBlock, n)
		} else {
			c.byTime = append(c.byTime, n)
		}
	}
	slices.SortStableFunc(c.byBlock,
		func(a, b int) int { return cmp.Compare(*c.asked[a].AsOfBlock, *c.asked[b].AsOfBlock) })
	slices.SortStableFunc(c.byTime, func(a, b int) int { return cmp.Compare(c.asked[a].until(), c.asked[b].until()) })
	return c, nil
}

// complete finds the position's key.
func (c *riskCase) complete() error {
	if len(c.Prices) == 0 {
		return errors.New("it has no prices")
	}
	if c.Account == nil || c.Market == nil || c.CollateralToken == nil || c.IsLong == nil {
		if c.PositionKey == nil {
			return errors.New("name the position: positionKey, or account, market, collateralToken and isLong")
		}
		return nil
	}
	key := perp.PositionKey(*c.Account, *c.Market, *c.CollateralToken, *c.IsLong)
	if c.PositionKey != nil && *c.PositionKey != key {
		return fmt.Errorf("positionKey %s is not that of the account, market, collateralToken and isLong beside it, "+
			"which is %s", c.PositionKey, key)
	}
	c.PositionKey = &key
	return nil
}

// until is the last second that counts for a case without a block.
func (c *riskCase) until() uint64 {
	if c.BlockTimestamp == nil {
		return math.MaxUint64
	}
	return *c.BlockTimestamp
}

// before answers the cases that ask for the state before a block. A chain's time never goes back, so no later block
// counts for them.
func (c *cases) before(block, seconds uint64, state *fold) error {
	for len(c.byBlock) > 0 && *c.asked[c.byBlock[0]].AsOfBlock < block {
		if err := c.answer(c.byBlock[0], state); err != nil {
			return err
		}
		c.byBlock = c.byBlock[1:]
	}
	for len(c.byTime) > 0 && c.asked[c.byTime[0]].until() < seconds {
		if err := c.answer(c.byTime[0], state); err != nil {
			return err
		}
		c.byTime = c.byTime[1:]
	}
	return nil
}

// rest answers what is left when the recording has ended, and writes all verdicts in the order of the cases.
func (c *cases) rest(state *fold) ([]byte, error) {
	for _, n := range slices.Concat(c.byBlock, c.byTime) {
		if err := c.answer(n, state); err != nil {
			return nil, err
		}
	}
	return encoded(c.verdicts)
}

func (c *cases) answer(n int, state *fold) error {
	asOf := state.seen.LastBlock
	if block := c.asked[n].AsOfBlock; block != nil {
		asOf = *block
	}
	if err := state.settle(asOf); err != nil {
		return err
	}
	if c.worthAt != state.seen.Logs {
		c.worth, c.worthAt = state.worth(), state.seen.Logs
	}
	verdict, err := c.asked[n].judge(state, c.tokens, c.worth)
	if err != nil {
		return fmt.Errorf("case %d: as of block %d: %w", n+1, state.seen.LastBlock, err)
	}
	c.verdicts[n] = verdict
	return nil
}

func (c *riskCase) judge(state *fold, tokens tokenNames, worth map[chain.Address]float64) (v caseVerdict, err error) {
	position, known := state.book.Get(perp.RowKey{Table: perp.Positions, Key: *c.PositionKey}).(perp.Position)
	if !known {
		return v, fmt.Errorf("position %s is not in the recording", c.PositionKey)
	}
	if err := c.agrees(position); err != nil {
		return v, err
	}
	market, known := state.book.Get(perp.RowKey{Table: perp.Markets, Key: position.Market.Hash()}).(perp.Market)
	if !known {
		return v, fmt.Errorf("market %s is not in the recording", position.Market)
	}
	prices, err := tokens.prices(c.Prices, market, worth)
	if err != nil {
		return v, err
	}
	at := state.seconds
	if c.BlockTimestamp != nil {
		at = *c.BlockTimestamp
	}
	verdict, err := perp.NewView(perp.Circumstances{Rows: state.book, Prices: prices, Time: at,
		FireRatio: perp.One}).Judge(position)
	return caseVerdict{
		PositionKey: *c.PositionKey, BlockTimestamp: at, Liquidatable: verdict.Liquidatable,
		RemainingCollateralUsd: verdict.RemainingCollateralUsd, MinCollateralUsd: verdict.MinCollateralUsd,
		MinCollateralUsdForLeverage: verdict.MinCollateralUsdForLeverage,
	}, err
}

// agrees compares the fields of a case's position, beside the key, with the position.
func (c *riskCase) agrees(p perp.Position) error {
	switch {
	case c.Account != nil && *c.Account != p.Account:
		return fmt.Errorf("position %s is of account %s, not %s", p.PositionKey, p.Account, c.Account)
	case c.Market != nil && *c.Market != p.Market:
		return fmt.Errorf("position %s is in market %s, not %s", p.PositionKey, p.Market, c.Market)
	case c.CollateralToken != nil && *c.CollateralToken != p.CollateralToken:
		return fmt.Errorf("position %s has collateral %s, not %s", p.PositionKey, p.CollateralToken, c.CollateralToken)
	case c.IsLong != nil && *c.IsLong != p.IsLong:
		return fmt.Errorf("position %s is long: %v, not %v", p.PositionKey, p.IsLong, *c.IsLong)
	}
	return nil
}
