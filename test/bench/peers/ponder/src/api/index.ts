import { Hono } from "hono";

// Ponder demands an API; nobody asks this one.
export default new Hono();
