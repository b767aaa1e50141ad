// The official SDKs as installed by tools/bootstrap.sh, and what the tests share.
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.env.TANDEM_NODE_MODULES, "here.js"));

export const OpenAI = require("openai").OpenAI;
export const openai = {
  zod: require("openai/helpers/zod"),
  standard: require("openai/helpers/standard-schema"),
  runner: require("openai/helpers/responses-tool-runner"),
};
export const Anthropic = require("@anthropic-ai/sdk").Anthropic;
export const anthropic = {
  ...require("@anthropic-ai/sdk/helpers/index"),
  zod: require("@anthropic-ai/sdk/helpers/beta/zod"),
  schema: require("@anthropic-ai/sdk/helpers/beta/json-schema"),
};
export const { z } = require("zod");

export const url = process.env.TANDEM_URL;
export const model = "default_model";
export const question = [{ role: "user", content: "What is the capital of France?" }];
export const task = [{ role: "user", content: "What time is it in Oslo?" }];
export const asJson = [{ role: "user", content: "A city, as JSON" }];
export const endless = [{ role: "user", content: "Endless" }];
export const City = z.object({ city: z.string(), size: z.number() });
export const expected = { city: "Oslo", size: 7 };
export const time = ({ city }) => (city === "Oslo" ? "11:00" : "12:30");
export const told = "In Oslo it is 12:30.";

/// What of a list is left when it is read to its end.
export async function collect(iterable) {
  const all = [];
  for await (const each of iterable) all.push(each);
  return all;
}

/// True when this server holds answers to a schema; a test that needs it is skipped otherwise.
export async function isStructured(client) {
  try {
    await client.chat.completions.create({ model, messages: asJson, response_format: { type: "json_object" } });
    return true;
  } catch (error) {
    if (error.status === 400 && error.param === "response_format") return false;
    throw error;
  }
}
