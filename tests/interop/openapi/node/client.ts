// A client whose types are made of the OpenAPI: it sends, receives with a lease, and completes.
import createClient from "openapi-fetch";
import type { paths } from "./made.js";

declare const process: { argv: string[] };
const [address, token] = process.argv.slice(2);
const client = createClient<paths>({
  baseUrl: address,
  headers: { Authorization: `Bearer ${token}` },
});

function required<T>(given: { data?: T; error?: { code: string } }): T {
  if (given.data === undefined) throw new Error(given.error?.code ?? "no answer");
  return given.data;
}

const path = { name: "orders" };
const sent = required(
  await client.POST("/api/v1/queues/{name}/messages", {
    params: { path, header: { "Rpcqm-Label": "made", "Rpcqm-Priority": 5 } },
    body: "one bicycle",
    bodySerializer: (body: unknown) => body as string,
    headers: { "Content-Type": "text/plain" },
  }),
);
const received = required(
  await client.POST("/api/v1/queues/{name}/receive", {
    params: { path, query: { wait: 1, max: 10, lease: 30 } },
  }),
);
const [message] = received.messages;
if (message.id !== sent.id || !message.lease) throw new Error("another message");
const done = await client.POST("/api/v1/leases/{lease}/complete", {
  params: { path: { lease: message.lease } },
});
if (done.response.status !== 204) throw new Error("not completed");
const empty = required(
  await client.POST("/api/v1/queues/{name}/receive", { params: { path } }),
);
const missing = await client.GET("/api/v1/queues/{name}", { params: { path: { name: "none" } } });
console.log(
  JSON.stringify({
    label: message.label,
    priority: message.priority,
    body: atob(message.body_base64),
    left: empty.messages.length,
    refused: missing.error?.code,
  }),
);
