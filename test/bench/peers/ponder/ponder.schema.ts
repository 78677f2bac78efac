import { onchainTable } from "ponder";

export const event = onchainTable("event", (t) => ({
  id: t.text().primaryKey(),
  block: t.bigint().notNull(),
  transaction: t.hex().notNull(),
  name: t.text().notNull(),
  topic1: t.hex(),
  topic2: t.hex(),
  data: t.hex().notNull(),
}));
