#!/usr/bin/env node
// Walks a robot through the grid world: sends what it sees and what it can do, carries out the one action that comes back.

import { DIRECTIONS, find, MAP, move } from './world.mjs';

const { TOLLGATE_URL = 'http://127.0.0.1:8787', TOLLGATE_KEY, TOLLGATE_MODEL, MAX_STEPS = '40' } = process.env;

const ACTIONS = [
  {
    name: 'move',
    description: 'One cell in a direction; into a wall does nothing.',
    parameters: {
      type: 'object',
      properties: { direction: { type: 'string', enum: Object.keys(DIRECTIONS) } },
      required: ['direction'],
      additionalProperties: false,
    },
  },
  { name: 'stop', description: 'Ends the walk: there is no way.' },
];

async function decide(map, goal) {
  const response = await fetch(`${TOLLGATE_URL}/api/core/agent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': TOLLGATE_KEY ?? '' },
    body: JSON.stringify({
      ...(TOLLGATE_MODEL && { model: TOLLGATE_MODEL }),
      message: 'Walk to the goal by the shortest way.',
      context: 'You are a robot on a grid. # is a wall, . is free, R is you, G is the goal; row 0 is in the north.',
      inputs: { map, goal },
      actions: ACTIONS,
      response_model: { action: 'string', arguments: 'object', why: 'string' },
    }),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(`${response.status} ${body.error?.code}: ${body.error?.message}`);
  return body;
}

let map = MAP;
let tokens = 0;
const goal = find(map, 'G');
for (let steps = 0; steps < Number(MAX_STEPS); steps += 1) {
  console.log(`${map.join('\n')}\n`);
  const { content, usage, trace } = await decide(map, goal);
  tokens += usage.total_tokens;
  const agents = trace.map(({ agent, ms }) => `${agent} ${ms} ms`).join(', ');
  console.log(`${content.action} ${content.arguments.direction ?? ''} (${content.why}) [${agents}]`);
  if (content.action === 'stop') break;
  if (content.action === 'move') map = move(map, content.arguments.direction);
  if (!find(map, 'G')) {
    console.log(`${map.join('\n')}\n\nThe goal is reached after ${steps + 1} moves and ${tokens} tokens.`);
    process.exit(0);
  }
}
console.log('The goal was not reached.');
process.exit(1);
