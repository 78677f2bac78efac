import { createConfig } from "ponder";

import { abi } from "./abi";

// Wide ranges and no limit of requests: nothing that Ponder is told here makes it wait.
export default createConfig({
  database: { kind: "postgres", connectionString: process.env.DATABASE_URL },
  chains: {
    bsc: {
      id: 56,
      rpc: process.env.NODE_URL,
      pollingInterval: 100,
      ethGetLogsBlockRange: 5000,
      maxRequestsPerSecond: 10_000,
    },
  },
  contracts: { EventEmitter: { abi, chain: "bsc", address: process.env.EMITTER as `0x${string}`, startBlock: 1 } },
});
