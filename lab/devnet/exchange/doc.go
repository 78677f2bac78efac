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
//	fee       = (sizeInUsd*POSITION_FEE_FACTOR(market, improved)/1e30) / collateral.min + funding owed
//	remaining = collateralAmount*collateral.min + pnl - fee*collateral.min
//	required  = max(MIN_COLLATERAL_USD, sizeInUsd*MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION(market)/1e30)
//	threshold = max(required, required*LIQUIDATION_RATIO_FACTOR/1e30)
//	liquidatable if and only if remaining <= 0 or remaining < threshold
//
// improved says whether closing the whole position brings the two sides' open interest in USD (over both collateral
// tokens) strictly closer together. It is GMX's rule without price impact, borrowing, referral discounts and a
// cap on profit; with LIQUIDATION_RATIO_FACTOR at 1e30 or below, or unset, the threshold is GMX's as well. An increase,
// or what a decrease leaves, must pass the same rule with MIN_COLLATERAL_FACTOR(market).
//
// # Versions
//
// The contracts speak v2.2c, or v2.2b where Config.Version says so. Of v2.2c alone are orders that are spread over time
// (createTwapOrder), keepers who cancel what has expired, and the funding bounds of each side. Every handler of v2.2c
// has the key of MIN_FUNDING_INCREASE_RATE_PER_SECOND in the code of a library linked into it; none of v2.2b has.
// Handlers hold no state: Upgrade puts a second set beside the first, and both work until Retire takes the roles of the
// old ones. Users approve tokens to the Router, which stays.
//
// Every execution brings the market's funding up to date first, and emits Funding. What the factor grows by is unset at
// first, so that it is 0 and no position owes anything; FUNDING_INCREASE_FACTOR_PER_SECOND(market), or FUNDING_FACTOR
// for a factor that is not adaptive, with FUNDING_EXPONENT_FACTOR, switch it on. What is paid nobody can claim.
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
//	MIN_FUNDING_FACTOR_PER_SECOND, MAX_FUNDING_FACTOR_PER_SECOND(market, isLong), in v2.2b (market)
//	MIN_FUNDING_INCREASE_RATE_PER_SECOND(market), not in v2.2b
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
//	createOrder, increase                   573 700   createOrder, take-profit               538 928
//	createDeposit                           672 122   createWithdrawal                         533 774
//	executeOrder, open                    1 260 246   executeOrder, grow                     1 080 852
//	executeOrder, shrink                  1 178 629   executeOrder, close and 6 auto-cancels 2 198 064
//	executeOrder, cancelled                 704 321   executeOrder, frozen                     657 264
//	executeOrder, lost race                 414 255   executeOrder, trigger not reached        512 650
//	executeLiquidation                    1 100 740   executeLiquidation, insolvent          1 149 980
//	executeLiquidation, lost race           394 488   executeLiquidation, healthy              636 350
//	executeDeposit                          847 070   executeWithdrawal                        845 507
//	createShift                             461 707   executeShift                           1 420 367
//	createGlvDeposit                        593 056   executeGlvDeposit                      1 452 638
//	createGlvWithdrawal                     472 058   executeGlvWithdrawal                   1 446 402
//	createGlvShift                          256 064   executeGlvShift                        1 515 619
//	updateAdlState                          503 039   executeAdl                             1 845 238
//	cancelOrder                             183 957   any of them without the role              35 500
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
