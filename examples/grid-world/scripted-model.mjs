// A provider plugin without a network: a "model" that knows one world. It plays every part of the team by the schema it
// is asked for: the router chooses, perception looks, navigation finds a way, the writer takes navigation's proposal.

import { DIRECTIONS, find, findWay, isFree, step } from './world.mjs';

const PARTS = {
  assignments: () => ({
    agents: [
      { agent: 'perception', instruction: 'Which neighbouring cells are free?' },
      { agent: 'navigation', instruction: 'Which way leads to the goal, and what is the next move?' },
    ],
  }),
  report: ({ system, world }) => (system.includes('You plan movement') ? navigate(world) : look(world)),
  result: ({ user, schema }) => ('answer' in schema.properties ? tell(user) : decide(user)),
};

function look({ map, robot }) {
  const free = Object.keys(DIRECTIONS).filter((direction) => isFree(map, step(robot, direction)));
  return { summary: `Free: ${free.join(', ') || 'nothing'}.`, confidence: 1 };
}

function navigate({ map, robot, goal }) {
  const way = findWay(map, robot, goal);
  if (!way)
    return { summary: 'There is no way to the goal.', confidence: 1, actions: [{ name: 'stop', arguments: {} }] };
  return {
    summary: `${way.length} moves to the goal, the next is ${way[0]}.`,
    confidence: 1,
    actions: [{ name: 'move', arguments: { direction: way[0] } }],
  };
}

/** Takes the action that the reports in the user's message propose. */
function decide(user) {
  const line = user.split('\n').find((one) => one.startsWith('[{"agent"')) ?? '[]';
  const reports = JSON.parse(line);
  const report = reports.find(({ actions }) => actions?.length > 0);
  const [action] = report?.actions ?? [{ name: 'none', arguments: {} }];
  return { action: action.name, arguments: action.arguments, why: report?.summary ?? 'No action was proposed.' };
}

/** Without a response_model the team asks for an answer, and a list of actions where there are any. */
function tell(user) {
  const { action, arguments: args, why } = decide(user);
  return { answer: why, actions: action === 'none' ? [] : [{ name: action, arguments: args }] };
}

function respond(request) {
  const { name, schema } = request.response_format?.json_schema ?? {};
  const part = PARTS[name];
  if (!part) return 'I only know how to walk on a grid.';
  const text = (role) => request.messages.findLast((message) => message.role === role)?.content ?? '';
  const user = text('user');
  return JSON.stringify(part({ schema, system: text('system'), user, world: readWorld(user) }));
}

/** The inputs are JSON in the user's message. */
function readWorld(text) {
  const inputs = text.split('\n').find((line) => line.startsWith('{'));
  if (inputs === undefined) return { map: [], robot: { row: 0, column: 0 }, goal: { row: 0, column: 0 } };
  const { map, goal } = JSON.parse(inputs);
  return { map, goal, robot: find(map, 'R') };
}

const words = (text) => text.split(/\s+/).filter(Boolean).length;

function complete(request) {
  const content = respond(request);
  const prompt = words(JSON.stringify(request.messages));
  return {
    id: 'chatcmpl-grid',
    object: 'chat.completion',
    created: 0,
    model: 'grid-brain',
    choices: [
      { index: 0, message: { role: 'assistant', content, refusal: null }, finish_reason: 'stop', logprobs: null },
    ],
    usage: { prompt_tokens: prompt, completion_tokens: words(content), total_tokens: prompt + words(content) },
  };
}

async function* once(text) {
  yield new TextEncoder().encode(text);
}

export default {
  name: 'scripted',
  kind: 'provider',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: {} },
  setup(api) {
    api.provider({
      specVersion: 1,
      vendor: 'scripted',
      baseUrl: 'http://scripted.invalid',
      models: [{ id: 'grid-brain', kind: 'chat', price: { input: 0, output: 0 } }],
      // Replaces the network: the request as the codec wrote it comes in, bytes of an answer go out.
      transport: async ({ body }) => ({
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: once(JSON.stringify(complete(body))),
      }),
      error: () => ({ class: 'upstream_error', message: 'the scripted model failed' }),
      // The wire is OpenAI's already, so nothing has to be translated.
      chat: {
        request: (input) => ({ path: '/chat/completions', body: input }),
        response: (body) => body,
        stream: () => ({
          push: ({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]),
          end: () => ({ chunks: [], complete: true }),
        }),
      },
    });
  },
};
