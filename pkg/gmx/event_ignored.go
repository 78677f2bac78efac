package gmx

// ignoredEvents are known by name and carry no state this module keeps, whatever their shape. Their scope still routes
// them, so that a version that starts to keep them finds them where they belong.
//
// Why each group is ignored stands with its list. What is common to all: no price of a liquidation, no trigger of an
// order and no deadline of a request depends on them.
func ignoredEvents() []eventKind {
	var kinds []eventKind
	list := func(s scope, names []string) {
		for _, name := range names {
			kinds = append(kinds, eventKind{name: name, scope: s})
		}
	}
	list(ofOrderKey, ignoredOfOrderKey)
	list(ofKey, ignoredOfKey)
	list(ofMarket, ignoredOfMarket)
	list(ofAccount, ignoredOfAccount)
	list(global, ignoredGlobal)
	list(global, ignoredTimelock)
	return kinds
}

// PositionFeesInfo is what an insolvent close could not collect. PositionFeesCollected follows it with what was, namely
// nothing, and settles the position; the shortfall is InsolventClose's.
var ignoredOfOrderKey = []string{"PositionFeesInfo"}

// The callback's share of a fee is in the collateral that PositionDecrease and PositionIncrease state.
var ignoredOfKey = []string{"PositionCollateralUsedForExecutionFee"}

var ignoredOfMarket = []string{
	// Reports about values that other events set: the pool's worth at some prices, the course of a swap, a shortfall of
	// funding.
	"MarketPoolValueInfo", "MarketPoolValueUpdated", "SwapInfo", "SwapFeesCollected", "InsufficientFundingFeePayment",
	// Balances that receivers of fees and affiliates may claim. They are outside the pool amounts.
	"ClaimableFeeAmountUpdated", "ClaimableUiFeeAmountUpdated", "FeesClaimed", "UiFeesClaimed",
	"AffiliateRewardUpdated",
	// Movements whose result PositionImpactPoolAmountUpdated, LentPositionImpactPoolAmountUpdated and PoolAmountUpdated
	// state beside them.
	"PositionImpactPoolWithdrawal", "LentImpactAmountReduction", "GlpMigration",
	// How much of a negative impact its trader may claim back later.
	"SetClaimableCollateralFactorForTime", "SetClaimableCollateralFactorForAccount",
	"SetClaimableCollateralReductionFactorForAccount",
}

var ignoredOfAccount = []string{
	// What accounts may claim and have claimed: funding, collateral, grants, rewards. It backs no position.
	"ClaimableFundingUpdated", "FundingFeesClaimed", "ClaimableCollateralUpdated", "CollateralClaimed",
	"ClaimFundsDeposited", "ClaimFundsWithdrawn", "ClaimFundsClaimed", "ClaimFundsTransferred",
	"AffiliateRewardClaimed",
	"SendContributorPayment", "SetContributorAmount", "TotalEsGmxRewardsIncreased",
	// What is left of an execution fee goes back to its payer. What the keeper earned is KeeperExecutionFee.
	"ExcessiveExecutionFee", "ExecutionFeeRefund", "ExecutionFeeRefundCallback",
	// The list of orders that end with their position. Each of them announces its own end.
	"ConfigSyncAutoCancelOrderList",
	// Accounts of other chains and accounts that act for others: orders and positions name their owner whoever acted.
	"MultichainBridgeIn", "MultichainTransferIn", "MultichainBridgeAction", "MultichainBridgeActionFailed",
	"MultichainBridgeOut",
	"MultichainTransferOut", "sendReadRequests", "lzReceive",
	"SubaccountAutoTopUp", "AddSubaccount", "RemoveSubaccount", "IncrementSubaccountActionCount",
	"SetSubaccountExpiresAt",
	"SetMaxAllowedSubaccountActionCount", "SetSubaccountAutoTopUpAmount", "SetSubaccountIntegrationId",
}

var ignoredGlobal = []string{
	// Prices come from reports, before an execution and not after it.
	"OraclePriceUpdate",
	// How the exchange checks a report. Reports are opaque to a keeper: who made one knows its feed, its multiplier and
	// its signers.
	"SignerAdded", "SignerRemoved", "InitOracleConfig", "SetOracleProviderForFeeHandlerToken",
	// SyncConfig reports what a SetUint beside it did.
	"SyncConfig",
	// A GLV's markets and worth: its requests name their market themselves.
	"GlvValueUpdated", "GlvCreated",
	// The exchange's own household.
	"ClaimTermsSet", "ClaimTermsRemoved", "FeeDistributionEvent", "BuybackFees", "SetAvailableFeeAmount",
	"SetReducedMintBurnFeeBasisPoints",
}

// ignoredTimelock announces what a later transaction may do and changes nothing itself. SignalPendingAction is followed
// by an event named after the action; these are the actions of TimelockConfig.
var ignoredTimelock = []string{
	"SignalPendingAction", "SignalGrantRole", "SignalRevokeRole", "RevokeRole", "SignalSetOracleProviderEnabled",
	"SignalSetAtomicOracleProvider",
	"SignalSetOracleProviderForToken", "SignalAddOracleSigner", "SignalRemoveOracleSigner", "SignalSetFeeReceiver",
	"SignalSetHoldingAddress",
	"SignalSetPriceFeed", "SignalSetDataStream", "SignalSetEdgeDataStream", "IncreaseTimelockDelay",
	"SignalReduceLentImpactAmount",
	"SignalWithdrawFromPositionImpactPool", "SignalWithdrawTokens", "SignalSetMinContributorPaymentInterval",
	"SignalSetMaxTotalContributorTokenAmount",
}
