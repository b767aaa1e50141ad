// Responses by every helper of the official SDK.
import assert from "node:assert/strict";
import test from "node:test";

import { City, OpenAI, asJson, collect, expected, isStructured, model, openai, question, task, time, told, url, z } from "./sdk.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const parameters = { type: "object", properties: { city: { type: "string" } } };
const tool = { type: "function", name: "get_time", parameters, strict: false };

test("a response, whole and streamed", async () => {
  const whole = await client.responses.create({ model, input: question });
  assert.equal(whole.output_text, "Paris, I think.");
  assert.deepEqual(whole.output.map((item) => item.type), ["reasoning", "message"]);
  assert.equal(whole.output[0].content[0].text, "France, then.");
  const events = await collect(await client.responses.create({ model, input: question, stream: true }));
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
  assert.equal(events.at(-1).response.output_text ?? "Paris, I think.", "Paris, I think.");
});

test("stream(): events and the final response", async () => {
  const seen = { text: "", arguments: "", thought: "" };
  const stream = client.responses
    .stream({ model, input: task, tools: [tool] })
    .on("response.output_text.delta", (event) => (seen.text += event.delta))
    .on("response.reasoning_text.delta", (event) => (seen.thought += event.delta))
    .on("response.function_call_arguments.delta", (event) => (seen.arguments += event.delta));
  const response = await stream.finalResponse();
  assert.equal(response.output_text, "Let me see.");
  assert.equal(seen.text, "Let me see.");
  assert.equal(seen.thought, "Which city?");
  assert.equal(seen.arguments, response.output.filter((item) => item.type === "function_call").map((item) => item.arguments).join(""));
});

test("parse(): tools", async () => {
  for (const make of [openai.zod.zodResponsesFunction, openai.standard.standardResponsesFunction]) {
    const made = make({ name: "get_time", parameters: z.object({ city: z.string() }) });
    const response = await client.responses.parse({ model, input: task, tools: [made] });
    const calls = response.output.filter((item) => item.type === "function_call");
    assert.deepEqual(calls.map((call) => call.parsed_arguments), [{ city: "Oslo" }, { city: "Bergen" }]);
  }
});

for (const options of [{}, { stream: true }, { stream: true, eager: true }]) {
  test(`the tool runner ${JSON.stringify(options)}`, async () => {
    const runner = new openai.runner.ResponsesToolRunner({ functions: [{ tool, execute: time }] });
    const response = await runner.run(client, { model, input: task, store: false }, options);
    assert.equal(response.output_text, told);
  });
}

test("a custom tool's input comes as it was written", async () => {
  const tools = [{ type: "custom", name: "patch", description: "Edits" }];
  const input = [{ role: "user", content: "Edit" }];
  const first = await client.responses.stream({ model, input, tools }).finalResponse();
  const [call] = first.output;
  assert.equal(call.type, "custom_tool_call");
  assert.equal(call.input, '+ a "line"\n');
  const output = { type: "custom_tool_call_output", call_id: call.call_id, output: "done" };
  const last = await client.responses.create({ model, input: [...input, ...first.output, output], tools });
  assert.equal(last.output_text, "Done.");
});

test("parse() and stream(): answers of a schema", async (t) => {
  if (!(await isStructured(client))) return t.skip("the server does not hold answers to schemas");
  for (const format of [openai.zod.zodTextFormat(City, "city"), openai.standard.standardTextFormat(City, "city")]) {
    const fields = { model, input: asJson, text: { format } };
    assert.deepEqual((await client.responses.parse(fields)).output_parsed, expected);
    assert.deepEqual((await client.responses.stream(fields).finalResponse()).output_parsed, expected);
  }
});

test("a failure in a stream is told", async () => {
  const events = await collect(await client.responses.create({ model, input: "Break", stream: true }));
  assert.equal(events.at(-1).type, "response.failed");
  assert.match(events.at(-1).response.error.message, /the disk is gone/);
});
