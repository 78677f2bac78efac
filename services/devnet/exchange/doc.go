// Package exchange deploys the devnet's perpetual exchange and acts on it as its users do.
//
// Deploy puts the contracts of package contracts on a chain, deterministically, and returns a Deployment: the addresses
// a keeper, a trader or a price feed has to be told. Client creates, changes and cancels orders, deposits, withdrawals
// and shifts, also those of GLVs. SignReport makes the price reports that the exchange's oracle accepts. Executing
// requests is the keepers' business and not in this package.
//
// # The liquidation rule
//
// With integer division rounding down, and USD with 30 decimals:
//
//	pnl       = long:  sizeInTokens*index.min - sizeInUsd
//	            short: sizeInUsd - sizeInTokens*index.max
//	fee       = (sizeInUsd*POSITION_FEE_FACTOR(market, improved)/1e30) / collateral.min
//	remaining = collateralAmount*collateral.min + pnl - fee*collateral.min
//	required  = max(MIN_COLLATERAL_USD, sizeInUsd*MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION(market)/1e30)
//	threshold = max(required, required*LIQUIDATION_RATIO_FACTOR/1e30)
//	liquidatable if and only if remaining <= 0 or remaining < threshold
//
// improved says whether closing the whole position brings the two sides' open interest in USD (over both collateral
// tokens) strictly closer together. It is GMX's rule without price impact, funding, borrowing, referral discounts and a
// cap on profit; with LIQUIDATION_RATIO_FACTOR at 1e30 or below, or unset, the threshold is GMX's as well. An increase,
// or what a decrease leaves, must pass the same rule with MIN_COLLATERAL_FACTOR(market).
//
// # Deleveraging
//
// A side of a market is to be deleveraged while its positions' profits, at the index price that is better for them, are
// more than MAX_PNL_FACTOR_FOR_ADL of what the pool holds to pay them, at the lower price. updateAdlState compares and
// says so; while it last said so, executeAdl closes a part of a position. That must bring the quotient down, and not
// below MIN_PNL_FACTOR_AFTER_ADL. Both refuse prices older than the last update.
//
// # Parameters
//
// Keys are keccak256(abi.encode(keccak256(abi.encode(name)), arguments...)), see contracts.Key. A deployment announces
// these by SetUint, SetBool and SetAddress:
//
//	MIN_COLLATERAL_USD, MIN_POSITION_SIZE_USD
//	MIN_COLLATERAL_FACTOR(market), MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION(market), LIQUIDATION_FEE_FACTOR(market)
//	POSITION_FEE_FACTOR(market, improved), RESERVE_FACTOR(market, isLong), MAX_POOL_AMOUNT(market, token)
//	MAX_PNL_FACTOR(MAX_PNL_FACTOR_FOR_ADL, market, isLong), MIN_PNL_FACTOR_AFTER_ADL(market, isLong), GLV_SHIFT_MIN_INTERVAL(glv)
//	SHIFT_GAS_LIMIT, GLV_DEPOSIT_GAS_LIMIT, GLV_WITHDRAWAL_GAS_LIMIT, GLV_SHIFT_GAS_LIMIT, GLV_PER_MARKET_GAS_LIMIT
//	MAX_ORACLE_TIMESTAMP_RANGE, IS_ORACLE_PROVIDER_ENABLED(provider), DEVNET_ORACLE_SIGNER, DEVNET_LIQUIDATION_BURN
//	MAX_AUTO_CANCEL_ORDERS, MAX_DATA_LENGTH, MAX_SWAP_PATH_LENGTH
//	MAX_CALLBACK_GAS_LIMIT, MAX_TOTAL_CALLBACK_GAS_LIMIT_FOR_AUTO_CANCEL_ORDERS, REFUND_EXECUTION_FEE_GAS_LIMIT
//	SWAP_IMPACT_FACTOR(market, positive), SWAP_IMPACT_EXPONENT_FACTOR(market), SWAP_FEE_FACTOR(market, improved)
//	WITHDRAWAL_FEE_FACTOR(market, improved), SWAP_FEE_RECEIVER_FACTOR, UI_FEE_FACTOR(receiver), MAX_UI_FEE_FACTOR
//	INCREASE_ORDER_GAS_LIMIT, DECREASE_ORDER_GAS_LIMIT, SWAP_ORDER_GAS_LIMIT, SINGLE_SWAP_GAS_LIMIT
//	DEPOSIT_GAS_LIMIT, WITHDRAWAL_GAS_LIMIT
//	MIN_ADDITIONAL_GAS_FOR_EXECUTION, MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD, MIN_HANDLE_EXECUTION_ERROR_GAS
//	ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1, ESTIMATED_GAS_FEE_MULTIPLIER_FACTOR
//	EXECUTION_GAS_FEE_BASE_AMOUNT_V2_1, EXECUTION_GAS_FEE_MULTIPLIER_FACTOR
//
// ORACLE_PROVIDER_FOR_TOKEN(oracle, token) comes with InitOracleProviderForToken. These are written without an event,
// as on the original's networks, and have to be read by call; a later change of theirs is announced:
//
//	REQUEST_EXPIRATION_TIME, MAX_ORACLE_PRICE_AGE, LIQUIDATION_RATIO_FACTOR, VIRTUAL_MARKET_ID(market)
//
// The switches IS_MARKET_DISABLED(market), CREATE_ORDER_FEATURE_DISABLED(handler, orderType) and
// EXECUTE_ORDER_FEATURE_DISABLED(handler, orderType) are unset at first. NONCE, POOL_AMOUNT(market, token),
// OPEN_INTEREST, OPEN_INTEREST_IN_TOKENS and COLLATERAL_SUM(market, collateralToken, isLong) are the exchange's own
// sums and cannot be set.
//
// # Gas
//
// Measured by TestGas on the London rules, ETH/USD with two price reports, gas used by the whole transaction:
//
//	createOrder, increase                   565 510   createOrder, take-profit                537 653
//	createDeposit                           567 947   createWithdrawal                        432 466
//	executeOrder, open                    1 191 558   executeOrder, grow                    1 012 147
//	executeOrder, shrink                  1 108 388   executeOrder, close and 6 auto-cancels 2 141 708
//	executeOrder, cancelled                 648 892   executeOrder, frozen                    601 939
//	executeOrder, lost race                 414 005   executeOrder, trigger not reached       512 342
//	executeLiquidation                    1 032 133   executeLiquidation, insolvent         1 081 131
//	executeLiquidation, lost race           392 052   executeLiquidation, healthy             571 576
//	executeDeposit                          775 125   executeWithdrawal                       773 800
//	createShift                             427 471   executeShift                          1 282 344
//	createGlvDeposit                        553 139   executeGlvDeposit                     1 391 888
//	createGlvWithdrawal                     437 346   executeGlvWithdrawal                  1 382 048
//	createGlvShift                          229 290   executeGlvShift                       1 380 518
//	updateAdlState                          502 623   executeAdl                            1 774 046
//	cancelOrder                             173 713   any of them without the role             35 500
//
// Shifts have three price reports, GLVs of three markets four.
//
// An execution of an order or a request demands more than it uses: at its start, after the price reports are set, there
// must be left its *_GAS_LIMIT plus MIN_ADDITIONAL_GAS_FOR_EXECUTION, else it reverts with InsufficientExecutionGas. A
// keeper adds about 500 000 for the transaction itself and its price reports. A liquidation or a deleveraging demands
// nothing. A liquidation burns DEVNET_LIQUIDATION_BURN beside its own work, 0 at first. What a GLV's requests demand
// grows with its markets (GLV_PER_MARKET_GAS_LIMIT), and with the deposit or withdrawal within (DEPOSIT_ or
// WITHDRAWAL_GAS_LIMIT). A shift needs more than the check asks for; in between, it may be cancelled for want of gas
// (TestShiftOutOfGas).
package exchange
