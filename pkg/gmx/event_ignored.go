package gmx

// ignoredEvents are known by name and carry no state this module keeps. Their scope still routes them, so that a version that starts to
// keep them finds them where they belong.
func ignoredEvents() []eventKind {
	var kinds []eventKind
	list := func(s scope, names []string) {
		for _, name := range names {
			kinds = append(kinds, eventKind{name: name, scope: s})
		}
	}
	list(global, ignoredGlobal)
	list(ofMarket, ignoredOfMarket)
	list(ofAccount, ignoredOfAccount)
	list(ofKey, ignoredOfKey)
	list(ofOrderKey, ignoredOfOrderKey)
	return kinds
}

var ignoredOfKey = []string{"PositionCollateralUsedForExecutionFee"}

// ignoredOfOrderKey is what a position paid. It belongs to the account, although its topic is the market.
var ignoredOfOrderKey = []string{"PositionFeesCollected", "PositionFeesInfo"}

var ignoredOfMarket = []string{
	"MarketPoolValueInfo", "MarketPoolValueUpdated", "SwapInfo", "SwapFeesCollected", "InsufficientFundingFeePayment",
	"ClaimableFeeAmountUpdated", "ClaimableUiFeeAmountUpdated", "FeesClaimed", "UiFeesClaimed",
	"AffiliateRewardUpdated", "PositionImpactPoolWithdrawal", "LentImpactAmountReduction", "GlpMigration",
	"SetClaimableCollateralFactorForTime", "SetClaimableCollateralFactorForAccount", "SetClaimableCollateralReductionFactorForAccount",
}

var ignoredOfAccount = []string{
	"ClaimableFundingUpdated", "FundingFeesClaimed", "ClaimableCollateralUpdated", "CollateralClaimed", "UiFeeFactorUpdated",
	"ClaimFundsDeposited", "ClaimFundsWithdrawn", "ClaimFundsClaimed", "ClaimFundsTransferred", "AffiliateRewardClaimed",
	"ExcessiveExecutionFee", "KeeperExecutionFee", "ExecutionFeeRefund", "ExecutionFeeRefundCallback",
	"ConfigSyncAutoCancelOrderList", "SendContributorPayment", "SetContributorAmount", "TotalEsGmxRewardsIncreased",
	"MultichainBridgeIn", "MultichainTransferIn", "MultichainBridgeAction", "MultichainBridgeActionFailed", "MultichainBridgeOut",
	"MultichainTransferOut", "sendReadRequests", "lzReceive",
	"SubaccountAutoTopUp", "AddSubaccount", "RemoveSubaccount", "IncrementSubaccountActionCount", "SetSubaccountExpiresAt",
	"SetMaxAllowedSubaccountActionCount", "SetSubaccountAutoTopUpAmount", "SetSubaccountIntegrationId",
}

var ignoredGlobal = []string{
	"OraclePriceUpdate", "SignerAdded", "SignerRemoved", "InitOracleConfig", "SetOracleProviderForFeeHandlerToken", "SyncConfig",
	"GlvMarketAdded", "GlvMarketRemoved", "GlvValueUpdated", "GlvCreated",
	"ClaimTermsSet", "ClaimTermsRemoved", "FeeDistributionEvent", "BuybackFees", "SetAvailableFeeAmount", "SetReducedMintBurnFeeBasisPoints",

	// SignalPendingAction is followed by an event named after the action; these are the actions of TimelockConfig. They announce what a
	// later transaction may do and change nothing themselves.
	"SignalPendingAction", "SignalGrantRole", "SignalRevokeRole", "RevokeRole", "SignalSetOracleProviderEnabled", "SignalSetAtomicOracleProvider",
	"SignalAddOracleSigner", "SignalRemoveOracleSigner", "SignalSetFeeReceiver", "SignalSetHoldingAddress", "SignalSetPriceFeed",
	"SignalSetDataStream", "SignalSetEdgeDataStream", "IncreaseTimelockDelay", "SignalReduceLentImpactAmount",
	"SignalWithdrawFromPositionImpactPool", "SignalWithdrawTokens", "SignalSetMinContributorPaymentInterval",
	"SignalSetMaxTotalContributorTokenAmount",
}
