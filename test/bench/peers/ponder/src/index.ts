import { ponder } from "ponder:registry";
import { event as events } from "ponder:schema";

// A row for each event is the least that an application could do with it.
for (const shape of ["EventLog", "EventLog1", "EventLog2"]) {
  ponder.on(`EventEmitter:${shape}` as any, async ({ event, context }: any) => {
    await context.db.insert(events).values({
      id: event.id,
      block: event.block.number,
      transaction: event.transaction.hash,
      name: event.args.eventName,
      topic1: event.log.topics[2] ?? null,
      topic2: event.log.topics[3] ?? null,
      data: event.log.data,
    });
  });
}
