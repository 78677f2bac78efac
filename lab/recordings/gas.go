package recordings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// gasCommand prints the gas limits that the sender's own model gives to cases.
func gasCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "gas", Short: "print the gas limits of executions under given words of the exchange",
		Args: cobra.NoArgs,
	}
	name := cmd.Flags().String("cases", "", "JSON file with sets of the exchange's words on gas, and executions to "+
		"give a limit: print the limits")
	_ = cmd.MarkFlagRequired("cases") // there is one
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limits, err := gasLimits(*name)
		if err != nil {
			return err
		}
		text, err := encoded(limits)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	return cmd
}

// gasLimit is what is printed of a case.
type gasLimit struct {
	Limit uint64 `json:"limit"`
}

// gasCases is a file of executions under sets of words. What was measured of them, and all other fields, are not read.
type gasCases struct {
	Words map[string]map[string]json.RawMessage `json:"words"`
	Cases []gasCase                             `json:"cases"`
}

// gasCase is one execution, by the names of the exchange's own parameters.
type gasCase struct {
	Words                      string `json:"words"`
	Kind                       string `json:"kind"`
	Note                       string `json:"note"`
	OraclePrices               int    `json:"oraclePrices"`
	SwapPathLength             int    `json:"swapPathLength"`
	DecreasePositionSwapType   int    `json:"decreasePositionSwapType"`
	CallbackGasLimit           uint64 `json:"callbackGasLimit"`
	AutoCancelOrders           *int   `json:"autoCancelOrders"`
	AutoCancelCallbackGasLimit uint64 `json:"autoCancelCallbackGasLimit"`
	SavedCallback              string `json:"savedCallback"`
	Tokens                     int    `json:"tokens"`
	MarketTokenDeposit         bool   `json:"marketTokenDeposit"`
	GlvMarkets                 int    `json:"glvMarkets"`
}

func gasLimits(name string) ([]gasLimit, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var file gasCases
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s is no JSON object with words and cases: %w", name, err)
	}
	if len(file.Cases) == 0 {
		return nil, fmt.Errorf("%s: there are no cases in it", name)
	}
	limits := make([]gasLimit, len(file.Cases))
	for n, c := range file.Cases {
		words, err := file.wordsOf(c)
		if err != nil {
			return nil, fmt.Errorf("%s: case %d: %w", name, n+1, err)
		}
		work, err := c.work()
		if err != nil {
			return nil, fmt.Errorf("%s: case %d: %w", name, n+1, err)
		}
		limits[n].Limit = words.Limit(work)
	}
	return limits, nil
}

// wordsOf are the words a case names. Words that no limit depends on are passed over.
func (f gasCases) wordsOf(c gasCase) (words gmx.GasWords, err error) {
	set, known := f.Words[c.Words]
	if !known {
		return words, fmt.Errorf("there is no set of words %q", c.Words)
	}
	words = gmx.DefaultGasWords()
	for _, name := range gmx.GasWordNames() {
		text, known := set[name]
		if !known {
			continue
		}
		value, err := chain.ParseUint(strings.Trim(string(text), `"`))
		if err != nil {
			return words, fmt.Errorf("%s is %s in the words %q: want a whole number", name, text, c.Words)
		}
		words.Set(name, value)
	}
	return words, nil
}

// gasKinds are the kinds of cases, by the exchange's names: those of jobs, but for two.
var gasKinds = func() map[string]gmx.Work {
	all := map[string]gmx.Work{
		"increase":       {Kind: job.Order, OrderType: perp.MarketIncrease},
		"decrease":       {Kind: job.Order, OrderType: perp.MarketDecrease},
		"swap":           {Kind: job.Order, OrderType: perp.MarketSwap},
		"updateAdlState": {Kind: job.AdlState},
	}
	for _, kind := range job.Kinds() {
		if kind != job.Order && kind != job.AdlState {
			all[string(kind)] = gmx.Work{Kind: kind}
		}
	}
	return all
}()

func (c gasCase) work() (gmx.Work, error) {
	work, known := gasKinds[c.Kind]
	if !known {
		return work, fmt.Errorf("there is no kind %q", c.Kind)
	}
	orders := c.autoCancelOrders()
	for _, n := range []int{c.OraclePrices, c.SwapPathLength, orders, c.GlvMarkets} {
		const enough = 1000
		if n < 0 || n > enough {
			return work, errors.New("it counts less than nothing, or more than there can be")
		}
	}
	work.Prices, work.Swaps, work.Callback, work.Markets = c.OraclePrices, c.SwapPathLength, c.CallbackGasLimit,
		c.GlvMarkets
	if c.Kind == "decrease" && c.DecreasePositionSwapType != 0 {
		work.Swaps++
	}
	for range orders {
		work.AutoCancel = append(work.AutoCancel, c.AutoCancelCallbackGasLimit)
	}
	work.SavedCallback = c.SavedCallback != "" && c.SavedCallback != "none"
	work.OneToken, work.MarketTokens = c.Tokens == 1, c.MarketTokenDeposit
	return work, nil
}

// notedOrders is the note of a decrease on how many orders end with its position.
var notedOrders = regexp.MustCompile(`(\d+) auto-cancel order`)

func (c gasCase) autoCancelOrders() int {
	if c.AutoCancelOrders != nil {
		return *c.AutoCancelOrders
	}
	noted := notedOrders.FindStringSubmatch(c.Note)
	if noted == nil {
		return 0
	}
	n, err := strconv.Atoi(noted[1])
	if err != nil {
		return -1 // more than there can be
	}
	return n
}
