// Chat completions by every helper of the official SDK.
import assert from "node:assert/strict";
import test from "node:test";

import { City, OpenAI, asJson, collect, endless, expected, isStructured, model, openai, question, task, time, told, url, z } from "./sdk.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const parameters = { type: "object", properties: { city: { type: "string" } } };
const tools = [{ type: "function", function: { name: "get_time", parameters } }];
const callable = () => [
  { type: "function", function: { name: "get_time", description: "Tells the time", parameters, parse: JSON.parse, function: time } },
];

test("an answer, whole and streamed", async () => {
  const whole = await client.chat.completions.create({ model, messages: question });
  assert.equal(whole.choices[0].message.content, "Paris, I think.");
  assert.equal(whole.choices[0].message.reasoning_content, "France, then.");
  assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
  const chunks = await collect(await client.chat.completions.create({ model, messages: question, stream: true }));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "Paris, I think.");
});

test("stream(): events, finals, usage", async () => {
  const seen = [];
  const stream = client.chat.completions
    .stream({ model, messages: task, tools, stream_options: { include_usage: true } })
    .on("content.delta", ({ delta }) => seen.push(delta))
    .on("tool_calls.function.arguments.delta", ({ arguments_delta: delta }) => seen.push(delta))
    .on("tool_calls.function.arguments.done", ({ name, index }) => seen.push(`${name} ${index}`));
  const completion = await stream.finalChatCompletion();
  assert.equal(await stream.finalContent(), "Let me see.");
  assert.equal((await stream.finalMessage()).tool_calls.length, 2);
  assert.deepEqual(JSON.parse((await stream.finalFunctionToolCall()).arguments), { city: "Bergen" });
  assert.deepEqual(await stream.totalUsage(), completion.usage);
  assert.ok(seen.includes("get_time 0") && seen.includes("get_time 1"));
  assert.equal(completion.choices[0].finish_reason, "tool_calls");
});

test("a stream goes on through a readable stream", async () => {
  const readable = client.chat.completions.stream({ model, messages: question }).toReadableStream();
  const { ChatCompletionStream } = await import("node:module").then(({ createRequire }) =>
    createRequire(`${process.env.TANDEM_NODE_MODULES}/here.js`)("openai/lib/ChatCompletionStream"),
  );
  assert.equal(await ChatCompletionStream.fromReadableStream(readable).finalContent(), "Paris, I think.");
});

for (const stream of [false, true]) {
  test(`runTools(), ${stream ? "streamed" : "whole"}`, async () => {
    const results = [];
    const runner = client.chat.completions
      .runTools({ model, messages: [...task], tools: callable(), stream })
      .on("functionToolCallResult", (result) => results.push(result));
    assert.equal(await runner.finalContent(), told);
    assert.deepEqual(results, ["11:00", "12:30"]);
    assert.equal(runner.messages.length, 5);
  });
}

test("runTools() with tools of zod and of standard schemas", async () => {
  for (const make of [openai.zod.zodFunction, openai.standard.standardFunction]) {
    const tool = make({ name: "get_time", description: "Tells the time", parameters: z.object({ city: z.string() }), function: time });
    const runner = client.chat.completions.runTools({ model, messages: [...task], tools: [tool] });
    assert.equal(await runner.finalContent(), told);
  }
});

test("parse(): tools", async () => {
  const tool = openai.zod.zodFunction({ name: "get_time", parameters: z.object({ city: z.string() }) });
  const completion = await client.chat.completions.parse({ model, messages: task, tools: [tool] });
  const parsed = completion.choices[0].message.tool_calls.map((call) => call.function.parsed_arguments);
  assert.deepEqual(parsed, [{ city: "Oslo" }, { city: "Bergen" }]);
});

test("parse() and stream(): answers of a schema", async (t) => {
  if (!(await isStructured(client))) return t.skip("the server does not hold answers to schemas");
  for (const format of [openai.zod.zodResponseFormat(City, "city"), openai.standard.standardResponseFormat(City, "city")]) {
    const fields = { model, messages: asJson, response_format: format };
    assert.deepEqual((await client.chat.completions.parse(fields)).choices[0].message.parsed, expected);
    const streamed = await client.chat.completions.stream(fields).finalChatCompletion();
    assert.deepEqual(streamed.choices[0].message.parsed, expected);
  }
});

test("an aborted stream ends its request", async () => {
  const stream = client.chat.completions.stream({ model, messages: endless });
  let id;
  await assert.rejects(async () => {
    for await (const chunk of stream) {
      id = chunk.id;
      stream.abort();
    }
  }, /abort/);
  for (const end = Date.now() + 5000; Date.now() < end; await new Promise((done) => setTimeout(done, 20))) {
    const { recent } = await client.get("/requests");
    if (recent.some((entry) => entry.id === id && entry.outcome === "cancelled")) return;
  }
  assert.fail("the request still runs");
});

test("errors are of their class, in a stream too", async () => {
  await assert.rejects(client.chat.completions.create({ model: "none", messages: question }), OpenAI.NotFoundError);
  await assert.rejects(client.chat.completions.create({ model, messages: question, temperature: -1 }), OpenAI.BadRequestError);
  const broken = [{ role: "user", content: "Break" }];
  await assert.rejects(client.chat.completions.stream({ model, messages: broken }).done(), /the disk is gone/);
});

test("models", async () => {
  const [listed] = await collect(client.models.list());
  assert.equal((await client.models.retrieve(listed.id)).id, listed.id);
});
