-- What planner and sender ask for: the living few among the many that are done.
CREATE INDEX position_open ON {state}.position (part) WHERE status = 'Active' AND deleted_at IS NULL;
CREATE INDEX perp_order_open ON {state}.perp_order (part) WHERE status IN ('Created', 'Updated', 'Frozen') AND deleted_at IS NULL;
CREATE INDEX request_open ON {state}.request (part) WHERE status IN ('Created', 'Updated', 'Frozen') AND deleted_at IS NULL;
-- The orders that end with a position, of an account: how much gas its end takes depends on them.
CREATE INDEX perp_order_auto_cancel ON {state}.perp_order (account, market)
    WHERE auto_cancel AND status IN ('Created', 'Updated', 'Frozen') AND deleted_at IS NULL;

-- What people ask for.
CREATE INDEX position_account ON {state}.position (account);
CREATE INDEX perp_order_account ON {state}.perp_order (account);
CREATE INDEX request_account ON {state}.request (account);
CREATE INDEX transaction_sender ON {state}.transaction (tx_from, tx_nonce);

-- What readers follow by revision.
CREATE INDEX position_rev ON {state}.position (part, rev);
CREATE INDEX perp_order_rev ON {state}.perp_order (part, rev);
CREATE INDEX request_rev ON {state}.request (part, rev);
CREATE INDEX market_rev ON {state}.market (part, rev);
CREATE INDEX market_value_rev ON {state}.market_value (part, rev);
CREATE INDEX parameter_rev ON {state}.parameter (part, rev);
CREATE INDEX oracle_source_rev ON {state}.oracle_source (part, rev);

-- What commissions are booked from, block by block.
CREATE INDEX keeper_fee_block ON {state}.keeper_fee (stamp_block);
