// Messages by every helper of the official SDK.
import assert from "node:assert/strict";
import test from "node:test";

import { Anthropic, City, anthropic, asJson, collect, endless, expected, model, question, task, time, told, url, z } from "./sdk.mjs";

const client = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
const base = { model, max_tokens: 200 };
const input_schema = { type: "object", properties: { city: { type: "string" } } };
const tools = [{ name: "get_time", description: "Tells the time", input_schema }];

test("a message, whole and streamed", async () => {
  const whole = await client.messages.create({ ...base, messages: question });
  assert.deepEqual(whole.content.map((block) => block.type), ["thinking", "text"]);
  assert.equal(whole.content[1].text, "Paris, I think.");
  const events = await collect(await client.messages.create({ ...base, messages: question, stream: true }));
  assert.equal(events[0].type, "message_start");
  assert.equal(events.at(-1).type, "message_stop");
});

test("stream(): events, finals", async () => {
  const seen = { text: "", thinking: "", json: "", signature: "", blocks: [] };
  const stream = client.messages
    .stream({ ...base, messages: task, tools, thinking: { type: "enabled", budget_tokens: 1024 }, max_tokens: 2000 })
    .on("text", (delta) => (seen.text += delta))
    .on("thinking", (delta) => (seen.thinking += delta))
    .on("signature", (signature) => (seen.signature = signature))
    .on("inputJson", (delta) => (seen.json += delta))
    .on("contentBlock", (block) => seen.blocks.push(block.type));
  const message = await stream.finalMessage();
  assert.equal(await stream.finalText(), "Let me see.");
  assert.deepEqual(seen.blocks, ["thinking", "text", "tool_use", "tool_use"]);
  assert.equal(seen.thinking, "Which city?");
  assert.equal(seen.text, "Let me see.");
  assert.ok(seen.signature);
  assert.equal(seen.json, '{"city": "Oslo"}{"city": "Bergen"}');
  assert.deepEqual(message.content.slice(2).map((block) => block.input), [{ city: "Oslo" }, { city: "Bergen" }]);
  assert.equal(message.stop_reason, "tool_use");
});

test("thinking goes back signed, results by their ids", async () => {
  const first = await client.messages.create({ ...base, messages: task, tools });
  const results = first.content
    .filter((block) => block.type === "tool_use")
    .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: [{ type: "text", text: time(block.input) }] }));
  const messages = [...task, { role: "assistant", content: first.content }, { role: "user", content: results }];
  assert.equal((await client.messages.stream({ ...base, messages, tools }).finalText()), told);
});

for (const stream of [false, true]) {
  test(`toolRunner(), ${stream ? "streamed" : "whole"}`, async () => {
    const fields = { name: "get_time", description: "Tells the time", run: time };
    for (const tool of [
      anthropic.zod.betaZodTool({ ...fields, inputSchema: z.object({ city: z.string() }) }),
      anthropic.schema.betaTool({ ...fields, inputSchema: input_schema }),
    ]) {
      const runner = client.beta.messages.toolRunner({ ...base, messages: [...task], tools: [tool], stream });
      const message = await runner.runUntilDone();
      assert.equal(message.content.at(-1).text, told);
    }
  });
}

test("parse(): answers of a schema", async () => {
  for (const format of [anthropic.zodOutputFormat(City), anthropic.zod.betaZodOutputFormat(City)]) {
    const fields = { ...base, messages: asJson, output_config: { format } };
    assert.deepEqual((await client.messages.parse(fields)).parsed_output, expected);
    assert.deepEqual((await client.messages.stream(fields).finalMessage()).parsed_output, expected);
    assert.deepEqual((await client.beta.messages.parse(fields)).parsed_output, expected);
  }
});

test("countTokens() counts what a message has", async () => {
  const { input_tokens } = await client.messages.countTokens({ model, messages: task, tools });
  const { usage } = await client.messages.create({ ...base, messages: task, tools });
  assert.equal(usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens, input_tokens);
});

test("an aborted stream ends its request", async () => {
  const stream = client.messages.stream({ ...base, max_tokens: 2000, messages: endless });
  stream.on("text", () => stream.abort());
  await assert.rejects(stream.done(), Anthropic.APIUserAbortError);
  for (const end = Date.now() + 5000; Date.now() < end; await new Promise((done) => setTimeout(done, 20))) {
    const { active } = await client.get("/v1/requests");
    if (active.every((entry) => entry.endpoint !== "messages")) return;
  }
  assert.fail("the request still runs");
});

test("errors are of their class, in a stream too", async () => {
  await assert.rejects(client.messages.create({ ...base, model: "none", messages: question }), Anthropic.NotFoundError);
  await assert.rejects(client.messages.create({ ...base, messages: [] }), Anthropic.BadRequestError);
  const broken = [{ role: "user", content: "Break" }];
  await assert.rejects(client.messages.stream({ ...base, messages: broken }).done(), /the disk is gone/);
});

test("models", async () => {
  const [listed] = await collect(client.models.list());
  assert.equal((await client.models.retrieve(listed.id)).id, listed.id);
});
