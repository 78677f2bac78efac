// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EventUtils} from "./EventUtils.sol";
import {Keys} from "./Keys.sol";
import {MarketLedger} from "./MarketLedger.sol";

/// @title Fees that a market token holds for others than its pool: the venue's receiver, and the interfaces that brought the trade.
library ClaimableFees {
    using EventUtils for EventUtils.EventLogData;

    bytes32 internal constant SWAP_FEE_TYPE = keccak256(abi.encode("SWAP_FEE_TYPE"));
    bytes32 private constant UI_SWAP_FEE_TYPE = keccak256(abi.encode("UI_SWAP_FEE_TYPE"));

    function addSwapFee(MarketLedger.Books memory books, address market, address token, uint256 amount) internal {
        if (amount == 0) return;
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("market", market);
        e.put("token", token);
        e.putUint("delta", amount);
        e.putUint("nextValue", books.dataStore.incrementUint(Keys.claimableFeeAmountKey(market, token), amount));
        e.putBytes32("feeType", SWAP_FEE_TYPE);
        books.eventEmitter.emitEventLog2("ClaimableFeeAmountUpdated", EventUtils.topic(market), SWAP_FEE_TYPE, e);
    }

    function addUiFee(MarketLedger.Books memory books, address receiver, address market, address token, uint256 amount)
        internal
    {
        if (amount == 0) return;
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("uiFeeReceiver", receiver);
        e.put("market", market);
        e.put("token", token);
        e.putUint("delta", amount);
        e.putUint(
            "nextValue", books.dataStore.incrementUint(Keys.claimableUiFeeAmountKey(market, token, receiver), amount)
        );
        e.putUint(
            "nextPoolValue", books.dataStore.incrementUint(Keys.claimableUiFeeAmountKey(market, token, address(0)), amount)
        );
        e.putBytes32("feeType", UI_SWAP_FEE_TYPE);
        books.eventEmitter.emitEventLog2("ClaimableUiFeeAmountUpdated", EventUtils.topic(market), UI_SWAP_FEE_TYPE, e);
    }
}
