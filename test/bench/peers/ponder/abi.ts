// The events of the venue's EventEmitter: one shape for all names, with none, one or two topics of their own.
const kinds = ["address", "uint256", "int256", "bool", "bytes32", "bytes", "string"];
const names = ["addressItems", "uintItems", "intItems", "boolItems", "bytes32Items", "bytesItems", "stringItems"];

const list = (name: string, type: string) => ({
  name,
  type: "tuple[]",
  components: [{ name: "key", type: "string" }, { name: "value", type }],
});

const eventData = {
  name: "eventData",
  type: "tuple",
  indexed: false,
  components: kinds.map((kind, i) => ({
    name: names[i],
    type: "tuple",
    components: [list("items", kind), list("arrayItems", `${kind}[]`)],
  })),
};

const event = (name: string, topics: string[]) => ({
  type: "event",
  name,
  anonymous: false,
  inputs: [
    { name: "msgSender", type: "address", indexed: false },
    { name: "eventName", type: "string", indexed: false },
    { name: "eventNameHash", type: "string", indexed: true },
    ...topics.map((topic) => ({ name: topic, type: "bytes32", indexed: true })),
    eventData,
  ],
});

// Ponder reads the types of handlers from a literal; these are built, so that handlers name their own.
export const abi = [
  event("EventLog", []),
  event("EventLog1", ["topic1"]),
  event("EventLog2", ["topic1", "topic2"]),
] as any;
