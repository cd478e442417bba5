// Asks a running server with the official client of OpenAI for Node, and with the AI SDK.
//
//     npm install openai ai @ai-sdk/openai-compatible zod
//     cargo run --release --bin burn-dfa-serve &
//     node models/serve/tests/clients/node_clients.mjs http://127.0.0.1:8000
//
// Every check prints a line; the first that fails ends the program with an error.

import assert from 'node:assert';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { generateText, generateObject, streamText, tool, stepCountIs, Output } from 'ai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

const baseURL = `${process.argv[2] ?? 'http://127.0.0.1:8000'}/v1`;
const prompt = 'Please send 12 brass lamps to Oscar Lund.';
const Order = z.object({ item: z.string(), quantity: z.number().int() });

// The official client.
const client = new OpenAI({ baseURL, apiKey: 'none' });
const model = (await client.models.list()).data[0].id;
const messages = [{ role: 'user', content: prompt }];
const parsed = await client.chat.completions.parse({ model, messages, response_format: zodResponseFormat(Order, 'order') });
assert.equal(typeof parsed.choices[0].message.parsed.quantity, 'number');
console.log('openai parse', JSON.stringify(parsed.choices[0].message.parsed));
let text = '';
for await (const chunk of await client.chat.completions.create({ model, messages, max_tokens: 60, stream: true })) text += chunk.choices[0]?.delta?.content ?? '';
assert(text.length > 0);
console.log('openai stream', text);
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const called = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Will it rain in Lisbon tomorrow?' }], tools: [{ type: 'function', function: { name: 'get_weather', parameters } }], tool_choice: 'required' });
const call = called.choices[0].message.tool_calls[0].function;
assert.equal(call.name, 'get_weather');
console.log('openai tools', JSON.stringify(call));
const response = await client.responses.create({ model, input: prompt, max_output_tokens: 60 });
console.log('openai responses', response.output_text);

// The AI SDK.
const served = createOpenAICompatible({ name: 'burn-dfa', baseURL, supportsStructuredOutputs: true })(model);
const { object } = await generateObject({ model: served, schema: Order, prompt });
assert.equal(typeof object.quantity, 'number');
console.log('ai object', JSON.stringify(object));
console.log('ai text', (await generateText({ model: served, prompt, maxOutputTokens: 60 })).text);
let streamed = '';
for await (const part of streamText({ model: served, prompt, maxOutputTokens: 60 }).textStream) streamed += part;
console.log('ai stream', streamed);
const weather = tool({ description: 'weather', inputSchema: z.object({ city: z.string() }) });
const { toolCalls } = await generateText({ model: served, prompt: 'Will it rain in Lisbon tomorrow?', tools: { get_weather: weather }, toolChoice: 'required' });
assert.equal(toolCalls[0].toolName, 'get_weather');
console.log('ai tools', JSON.stringify(toolCalls[0].input));

// An object beside tools: the tool is offered in the first step only.
const stock = tool({ description: 'How many pieces of an item are in stock.', inputSchema: z.object({ item: z.string() }), execute: async () => 40 });
for (const toolChoice of ['auto', 'required']) {
  const prepareStep = ({ stepNumber }) => (stepNumber === 0 ? { toolChoice } : { toolChoice: 'none', activeTools: [] });
  const settings = { model: served, prompt, maxOutputTokens: 150, output: Output.object({ schema: Order }), tools: { in_stock: stock }, prepareStep, stopWhen: stepCountIs(3) };
  const answer = await generateText(settings);
  assert.equal(typeof answer.output.quantity, 'number');
  assert(toolChoice === 'auto' || answer.steps[0].toolCalls[0].toolName === 'in_stock');
  console.log('ai output', toolChoice, JSON.stringify(answer.output), answer.steps.length, 'steps');
  const stream = streamText(settings);
  let partial;
  for await (partial of stream.partialOutputStream);
  assert.equal(typeof (await stream.output).quantity, 'number');
  console.log('ai output stream', toolChoice, JSON.stringify(partial));
}
