package evmnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	callGasCap  = 50_000_000 // Of a node's defaults, as is the next one.
	callTimeout = 5 * time.Second
)

// stateAPI has the eth methods that read or execute on a state. Block arguments are a tag, a number, a hash, or an
// EIP-1898 object.
type stateAPI struct{ n *Node }

func (a stateAPI) at(ref *rpc.BlockNumberOrHash) (*state.StateDB, *types.Header, error) {
	h, err := a.n.header(ref)
	if err != nil {
		return nil, nil, err
	}
	st, err := a.n.states.at(h.Root)
	return st, h, err
}

func (a stateAPI) GetBalance(address common.Address, ref *rpc.BlockNumberOrHash) (*hexutil.Big, error) {
	st, _, err := a.at(ref)
	if err != nil {
		return nil, err
	}
	return (*hexutil.Big)(st.GetBalance(address).ToBig()), st.Error()
}

func (a stateAPI) GetCode(address common.Address, ref *rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	st, _, err := a.at(ref)
	if err != nil {
		return nil, err
	}
	return st.GetCode(address), st.Error()
}

func (a stateAPI) GetStorageAt(address common.Address, slot common.Hash, ref *rpc.BlockNumberOrHash) (hexutil.Bytes,
	error) {
	st, _, err := a.at(ref)
	if err != nil {
		return nil, err
	}
	value := st.GetState(address, slot)
	return value[:], st.Error()
}

// GetTransactionCount counts transactions in the pool, too, if asked for `pending`.
func (a stateAPI) GetTransactionCount(address common.Address, ref *rpc.BlockNumberOrHash) (hexutil.Uint64, error) {
	if ref != nil {
		if tag, ok := ref.Number(); ok && tag == rpc.PendingBlockNumber {
			return hexutil.Uint64(a.n.pool.PoolNonce(address)), nil
		}
	}
	st, _, err := a.at(ref)
	if err != nil {
		return 0, err
	}
	return hexutil.Uint64(st.GetNonce(address)), st.Error()
}

// Call executes a message on the state of a block. A revert is an error with code 3 and the returned bytes as data.
func (a stateAPI) Call(ctx context.Context, args callArgs, ref *rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	st, h, err := a.at(ref)
	if err != nil {
		return nil, err
	}
	msg := args.message()
	if share, is := a.n.laneShare(msg); is {
		return share, nil
	}
	result, err := a.execute(ctx, msg, h, st)
	if err != nil {
		return nil, err
	}
	if errors.Is(result.Err, vm.ErrExecutionReverted) {
		return nil, newRevertError(result.Revert())
	}
	return result.Return(), result.Err
}

func (a stateAPI) execute(ctx context.Context, msg *core.Message, h *types.Header,
	st *state.StateDB) (*core.ExecutionResult, error) {
	evm := vm.NewEVM(core.NewEVMBlockContext(h, a.n.chain, nil), st, a.n.chain.Config(), vm.Config{NoBaseFee: true})
	defer evm.Release()
	evm.SetJumpDestCache(a.n.chain.JumpDestCache())
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stopped := make(chan struct{})
	finished := context.AfterFunc(ctx, func() { evm.Cancel(); close(stopped) })
	defer func() {
		if !finished() {
			<-stopped // The machine must not be released while it is being cancelled.
		}
	}()
	result, err := core.ApplyMessage(evm, msg, core.NewGasPool(callGasCap))
	switch {
	case st.Error() != nil: // First, since a missing state looks like a failed execution.
		return nil, st.Error()
	case evm.Cancelled():
		return nil, fmt.Errorf("execution aborted (timeout = %v)", callTimeout)
	case err != nil:
		return nil, fmt.Errorf("err: %w (supplied gas %d)", err, msg.GasLimit)
	}
	return result, nil
}

// revertError is how a node reports a revert: code 3, the bytes as data, and the reason in the text if it is a string.
type revertError struct {
	reason string
	data   []byte
}

func newRevertError(data []byte) *revertError {
	e := &revertError{data: data}
	if reason, err := abi.UnpackRevert(data); err == nil {
		e.reason = reason
	}
	return e
}

func (e *revertError) Error() string {
	if e.reason == "" {
		return vm.ErrExecutionReverted.Error()
	}
	return vm.ErrExecutionReverted.Error() + ": " + e.reason
}

// ErrorCode implements rpc.Error.
func (e *revertError) ErrorCode() int { return 3 }

// ErrorData implements rpc.DataError.
func (e *revertError) ErrorData() any { return hexutil.Encode(e.data) }
