import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { type CompatibleSpec, drop, openaiCompatible } from '../../plugins/providers/openai-compatible.ts';
import { runKit } from '../support/plugins/run-kit.ts';
import { testProvider } from './provider.ts';

const LACKS = Object.fromEntries(
  ['cached tokens', 'log probabilities', 'parallel tool calls', 'reasoning content', 'reasoning tokens'].map(
    (feature) => [feature, 'it is made up'],
  ),
);
const NO_LOGPROBS = { logprobs: drop(), top_logprobs: drop(), parallel_tool_calls: drop() };
const CALL = { id: 'a1', type: 'function', function: { name: 'f', arguments: '{}' } };
const USAGE = { usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 } };

/** Titles of the kit's failing tests for a vendor whose responses call one tool, as JSON and streamed. */
async function failuresOf(spec: Partial<CompatibleSpec>): Promise<readonly string[]> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-cells-'));
  const message = { role: 'assistant', content: 'x', tool_calls: [CALL] };
  const response = { choices: [{ index: 0, message, finish_reason: 'tool_calls' }], ...USAGE };
  const delta = { ...message, tool_calls: [{ index: 0, ...CALL }] };
  const chunk = { choices: [{ index: 0, delta, finish_reason: 'tool_calls' }], ...USAGE };
  writeFileSync(path.join(folder, 'chat.json'), JSON.stringify(response));
  writeFileSync(path.join(folder, 'stream.sse'), `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  const expected = [{ finish_reason: 'tool_calls' }];
  for (const file of ['chat.json', 'stream.sse'])
    writeFileSync(path.join(folder, `${file}.expected.json`), JSON.stringify({ choices: expected }));
  const plugin = openaiCompatible({ name: 'acme', baseUrl: 'https://acme.example/v1', listsModels: false, ...spec });
  const failures = await runKit((runner) => testProvider({ plugin, fixtures: pathToFileURL(`${folder}/`), runner }));
  rmSync(folder, { recursive: true });
  return failures.map(({ title }) => title);
}

describe('a cell of the provider matrix', () => {
  it('is filled by what fixtures show and by what the provider’s data says is lacking', async () => {
    expect(await failuresOf({ fields: NO_LOGPROBS, lacks: LACKS })).to.deep.equal([]);
  });

  it('is open, and fails, when neither says anything', async () => {
    const { 'cached tokens': _cached, ...lacks } = LACKS;
    expect(await failuresOf({ fields: NO_LOGPROBS, lacks })).to.deep.equal(['shows cached tokens']);
  });

  it('is not closed by a lack that a fixture disproves', async () => {
    const fields = { ...NO_LOGPROBS, tools: drop() };
    expect(await failuresOf({ fields, lacks: { ...LACKS, 'tool calls': 'it is made up' } })).to.deep.equal([
      'offers no tool calls',
      'offers no streamed tool calls',
    ]);
  });

  it('is not closed by a lack of what a field still asks for', async () => {
    const { logprobs: _logprobs, ...fields } = NO_LOGPROBS;
    expect(await failuresOf({ fields, lacks: LACKS })).to.deep.equal([
      'offers no log probabilities',
      'offers no streamed log probabilities',
    ]);
  });

  it('is not closed by a lack without a reason', async () => {
    const lacks = { ...LACKS, 'reasoning tokens': ' ' };
    expect(await failuresOf({ fields: NO_LOGPROBS, lacks })).to.deep.equal(['offers no reasoning tokens']);
  });

  it('cannot say that a vendor behind a network never fails', async () => {
    const failed = await failuresOf({ fields: NO_LOGPROBS, lacks: { ...LACKS, errors: 'it is made up' } });
    expect(failed).to.include.members(['offers no errors', 'offers no failures in streams']);
  });

  it('is open for a list of models and embeddings that no fixture shows', async () => {
    const failed = await failuresOf({ fields: NO_LOGPROBS, lacks: LACKS, listsModels: true, embeddings: {} });
    expect(failed).to.deep.equal(['shows embeddings', 'shows model list']);
  });
});
