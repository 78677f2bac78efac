-- state layout 9
-- The rows of a generation, one column per field of the row types of pkg/perp: amounts and USD as there, texts escaped (see escape.go).
-- every_table.sql adds what all tables have in common.

CREATE TABLE {state}.position (
    key                                          bytea         NOT NULL,
    account                                      bytea         NOT NULL,
    market                                       bytea         NOT NULL,
    collateral_token                             bytea         NOT NULL,
    is_long                                      boolean       NOT NULL,
    status                                       text          NOT NULL,
    size_in_usd                                  numeric(78,0) NOT NULL,
    size_in_tokens                               numeric(78,0) NOT NULL,
    collateral_amount                            numeric(78,0) NOT NULL,
    pending_impact_amount                        numeric(78,0) NOT NULL,
    borrowing_factor                             numeric(78,0) NOT NULL,
    funding_fee_amount_per_size                  numeric(78,0) NOT NULL,
    long_token_claimable_funding_amount_per_size numeric(78,0) NOT NULL,
    short_token_claimable_funding_per_size       numeric(78,0) NOT NULL,
    increased_at_time                            numeric(78,0) NOT NULL,
    decreased_at_time                            numeric(78,0) NOT NULL,
    changes                                      numeric(20,0) NOT NULL,
    stamp_block                                  numeric(20,0) NOT NULL,
    stamp_log                                    bigint        NOT NULL,
    stamp_tx_hash                                bytea         NOT NULL,
    stamp_time_ms                                numeric(20,0) NOT NULL
);

CREATE TABLE {state}.perp_order (
    key                             bytea         NOT NULL,
    account                         bytea         NOT NULL,
    receiver                        bytea         NOT NULL,
    callback_contract               bytea         NOT NULL,
    ui_fee_receiver                 bytea         NOT NULL,
    market                          bytea         NOT NULL,
    initial_collateral_token        bytea         NOT NULL,
    cancellation_receiver           bytea         NOT NULL,
    swap_path                       bytea[]       NOT NULL,
    order_type                      smallint      NOT NULL,
    decrease_position_swap_type     numeric(78,0) NOT NULL,
    size_delta_usd                  numeric(78,0) NOT NULL,
    initial_collateral_delta_amount numeric(78,0) NOT NULL,
    trigger_price                   numeric(78,0) NOT NULL,
    acceptable_price                numeric(78,0) NOT NULL,
    execution_fee                   numeric(78,0) NOT NULL,
    callback_gas_limit              numeric(78,0) NOT NULL,
    min_output_amount               numeric(78,0) NOT NULL,
    updated_at_time                 numeric(78,0) NOT NULL,
    valid_from_time                 numeric(78,0) NOT NULL,
    src_chain_id                    numeric(78,0) NOT NULL,
    is_long                         boolean       NOT NULL,
    should_unwrap_native_token      boolean       NOT NULL,
    auto_cancel                     boolean       NOT NULL,
    data_list                       bytea[]       NOT NULL,
    status                          text          NOT NULL,
    reason                          text          NOT NULL,
    reason_bytes                    bytea         NOT NULL,
    secondary_order_type            numeric(78,0) NOT NULL,
    changes                         numeric(20,0) NOT NULL,
    birth_block                     numeric(20,0) NOT NULL,
    birth_log                       bigint        NOT NULL,
    birth_tx_hash                   bytea         NOT NULL,
    birth_time_ms                   numeric(20,0) NOT NULL,
    stamp_block                     numeric(20,0) NOT NULL,
    stamp_log                       bigint        NOT NULL,
    stamp_tx_hash                   bytea         NOT NULL,
    stamp_time_ms                   numeric(20,0) NOT NULL
);

CREATE TABLE {state}.request (
    key             bytea         NOT NULL,
    kind            text          NOT NULL,
    account         bytea         NOT NULL,
    market          bytea         NOT NULL,
    updated_at_time numeric(78,0) NOT NULL,
    fields          jsonb         NOT NULL,
    status          text          NOT NULL,
    reason          text          NOT NULL,
    reason_bytes    bytea         NOT NULL,
    birth_block     numeric(20,0) NOT NULL,
    birth_log       bigint        NOT NULL,
    birth_tx_hash   bytea         NOT NULL,
    birth_time_ms   numeric(20,0) NOT NULL,
    stamp_block     numeric(20,0) NOT NULL,
    stamp_log       bigint        NOT NULL,
    stamp_tx_hash   bytea         NOT NULL,
    stamp_time_ms   numeric(20,0) NOT NULL
);

CREATE TABLE {state}.market (
    key           bytea         NOT NULL,
    market_token  bytea         NOT NULL,
    index_token   bytea         NOT NULL,
    long_token    bytea         NOT NULL,
    short_token   bytea         NOT NULL,
    salt          bytea         NOT NULL,
    market_type   bytea         NOT NULL,
    stamp_block   numeric(20,0) NOT NULL,
    stamp_log     bigint        NOT NULL,
    stamp_tx_hash bytea         NOT NULL,
    stamp_time_ms numeric(20,0) NOT NULL
);

CREATE TABLE {state}.market_value (
    key           bytea         NOT NULL,
    measure       text          NOT NULL,
    scope         bytea         NOT NULL,
    token         bytea         NOT NULL,
    is_long       boolean       NOT NULL,
    value         numeric(78,0) NOT NULL,
    stamp_block   numeric(20,0) NOT NULL,
    stamp_log     bigint        NOT NULL,
    stamp_tx_hash bytea         NOT NULL,
    stamp_time_ms numeric(20,0) NOT NULL
);

CREATE TABLE {state}.parameter (
    key           bytea         NOT NULL,
    value         bytea         NOT NULL,
    source        text          NOT NULL,
    stamp_block   numeric(20,0) NOT NULL,
    stamp_log     bigint        NOT NULL,
    stamp_tx_hash bytea         NOT NULL,
    stamp_time_ms numeric(20,0) NOT NULL
);

CREATE TABLE {state}.bad_debt (
    key                        bytea         NOT NULL, -- the order's
    position_key               bytea         NOT NULL,
    account                    bytea         NOT NULL,
    market                     bytea         NOT NULL,
    position_collateral_amount numeric(78,0) NOT NULL,
    base_pnl_usd               numeric(78,0) NOT NULL,
    remaining_cost_usd         numeric(78,0) NOT NULL,
    step                       text          NOT NULL,
    stamp_block                numeric(20,0) NOT NULL,
    stamp_log                  bigint        NOT NULL,
    stamp_tx_hash              bytea         NOT NULL,
    stamp_time_ms              numeric(20,0) NOT NULL
);

CREATE TABLE {state}.transaction (
    key           bytea         NOT NULL, -- the transaction's hash
    tx_from       bytea         NOT NULL,
    tx_to         bytea         NOT NULL,
    tx_nonce      numeric(20,0) NOT NULL,
    tx_block      numeric(20,0) NOT NULL,
    tx_block_hash bytea         NOT NULL,
    tx_index      bigint        NOT NULL,
    tx_ok         boolean       NOT NULL,
    tx_gas_used   numeric(20,0) NOT NULL,
    tx_gas_price  numeric(20,0) NOT NULL,
    stamp_block   numeric(20,0) NOT NULL,
    stamp_log     bigint        NOT NULL,
    stamp_tx_hash bytea         NOT NULL,
    stamp_time_ms numeric(20,0) NOT NULL
);

CREATE TABLE {state}.oracle_source (
    key           bytea         NOT NULL,
    oracle        bytea         NOT NULL,
    token         bytea         NOT NULL,
    provider      bytea         NOT NULL,
    stamp_block   numeric(20,0) NOT NULL,
    stamp_log     bigint        NOT NULL,
    stamp_tx_hash bytea         NOT NULL,
    stamp_time_ms numeric(20,0) NOT NULL
);

CREATE TABLE {state}.settlement (
    key                     bytea         NOT NULL, -- the order's
    position_key            bytea         NOT NULL,
    account                 bytea         NOT NULL,
    market                  bytea         NOT NULL,
    collateral_token        bytea         NOT NULL,
    is_long                 boolean       NOT NULL,
    order_type              smallint      NOT NULL,
    size_delta_usd          numeric(78,0) NOT NULL,
    size_in_usd             numeric(78,0) NOT NULL,
    collateral_amount       numeric(78,0) NOT NULL,
    collateral_delta_amount numeric(78,0) NOT NULL,
    execution_price         numeric(78,0) NOT NULL,
    base_pnl_usd            numeric(78,0) NOT NULL,
    price_impact_usd        numeric(78,0) NOT NULL,
    funding_fee_amount      numeric(78,0) NOT NULL,
    borrowing_fee_amount    numeric(78,0) NOT NULL,
    position_fee_amount     numeric(78,0) NOT NULL,
    liquidation_fee_amount  numeric(78,0) NOT NULL,
    total_cost_amount       numeric(78,0) NOT NULL,
    stamp_block             numeric(20,0) NOT NULL,
    stamp_log               bigint        NOT NULL,
    stamp_tx_hash           bytea         NOT NULL,
    stamp_time_ms           numeric(20,0) NOT NULL
);

CREATE TABLE {state}.keeper_fee (
    key           bytea         NOT NULL, -- of transaction and log index
    keeper        bytea         NOT NULL,
    amount        numeric(78,0) NOT NULL,
    stamp_block   numeric(20,0) NOT NULL,
    stamp_log     bigint        NOT NULL,
    stamp_tx_hash bytea         NOT NULL,
    stamp_time_ms numeric(20,0) NOT NULL
);
