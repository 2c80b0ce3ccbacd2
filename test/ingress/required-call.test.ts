/** Forced tool calls at models that cannot be forced: the gateway asks in words, and once more after a response without a call. */
import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { readBooks, settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { tokenPrices } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { type ScriptedOutput, streamText, wholeBody } from '../support/vendors/vendor-wires.ts';

const PROSE: ScriptedOutput = { pieces: [{ text: 'It is noon, I think.' }] };
const CALL: ScriptedOutput = {
  pieces: [{ text: 'Looking.' }, { call: 'now', id: 'call_1', arguments: '{"zone":"UTC"}' }],
};
const OTHER: ScriptedOutput = { pieces: [{ call: 'later', id: 'call_2', arguments: '{}' }] };
const CUT: ScriptedOutput = { ...PROSE, finish: 'length' };

const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
const REQUEST = {
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'What time is it?' },
  ],
  tools: [tool('now'), tool('later')],
  tool_choice: 'required',
};
const NAMED = { tool_choice: { type: 'function', function: { name: 'now' } } };

/** Models that cannot be forced, on two wires. */
const MODELS = ['anthropic/claude-opus-5-5', 'moonshot/kimi-k2-0905-preview'];

/** Sends the outputs in order, whole or streamed as each request asks, in the format of its path. */
function responses(...outputs: readonly ScriptedOutput[]): Script[] {
  return outputs.map((said) => async (connection) => {
    const { path } = connection.request;
    const wire = path.includes('/messages') ? 'anthropic' : 'openai';
    const { stream } = connection.request.json() as JsonObject;
    if (stream !== true) return connection.send(respondWith(200, wholeBody(wire, said)));
    await connection.send(SSE_HEAD);
    await connection.send(chunk(streamText(wire, said)));
    return connection.send(LAST_CHUNK);
  });
}

describe('a tool call that a caller requires of a model that cannot be forced', () => {
  let upstream: ScriptedUpstream;
  let other: ScriptedUpstream;
  let slow: ScriptedUpstream;
  let gateway: TestGateway;
  before(async () => {
    [upstream, other, slow] = await Promise.all([
      startScriptedUpstream(),
      startScriptedUpstream(),
      startScriptedUpstream(),
    ]);
    const vendor = (url: string) => ({
      ...{ apiKey: 'sk-0123456789', baseUrl: url, models: ['*'], prices: tokenPrices(1, 2) },
    });
    gateway = await startGateway({
      providers: {
        anthropic: vendor(upstream.url),
        moonshot: vendor(upstream.url),
        openai: vendor(other.url),
        slow: { ...vendor(slow.url), plugin: 'anthropic' },
      },
      models: {
        either: [MODELS[0], 'openai/gpt-4o'],
        hedged: { targets: ['slow/claude-opus-5-5', MODELS[1]], hedge: { after: '20ms', maxExtra: '100%' } },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await Promise.all([upstream?.close(), other?.close(), slow?.close()]);
  });

  async function send(model: string | undefined, stream: boolean, more: object = {}, key = gateway.key) {
    const before = upstream.requests.length;
    const body = { ...REQUEST, model, stream, ...(stream && { stream_options: { include_usage: true } }), ...more };
    const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });
    const text = await response.text();
    const sent = upstream.requests.slice(before).map((request) => request.json() as JsonObject);
    return { status: response.status, headers: response.headers, text, sent };
  }

  /** Text, names of calls and prompt tokens of a response, whole or streamed. */
  function read(text: string, stream: boolean) {
    const events = stream
      ? text.split('\n').flatMap((line) => (/^data: \{/.test(line) ? [JSON.parse(line.slice(6)) as JsonObject] : []))
      : [JSON.parse(text) as JsonObject];
    const choices = events.flatMap(({ choices: list }) => list as readonly JsonObject[]);
    const parts = choices.map((choice) => (choice['delta'] ?? choice['message']) as JsonObject);
    const calls = parts.flatMap(({ tool_calls: list }) => (list ?? []) as readonly { function: { name?: string } }[]);
    const usage = events.findLast((event) => event['usage'])?.['usage'] as { prompt_tokens: number } | undefined;
    return {
      text: parts.map(({ content }) => content ?? '').join(''),
      calls: calls.flatMap(({ function: { name } }) => name ?? []),
      tokens: usage?.prompt_tokens,
    };
  }

  for (const model of MODELS)
    for (const stream of [false, true]) {
      const how = `${model.split('/')[0]}, ${stream ? 'streamed' : 'whole'}`;

      it(`G32: is asked for once more after a response without it: ${how}`, async () => {
        upstream.script(...responses(PROSE, CALL));
        const { status, text, sent, headers } = await send(model, stream);
        expect([status, sent.length], text).to.deep.equal([200, 2]);
        expect(read(text, stream)).to.deep.equal({ text: 'Looking.', calls: ['now'], tokens: 40 });
        expect(headers.get('x-tollgate-attempts')).to.equal('2');
        const [first, second] = sent.map(({ messages }) => JSON.stringify(messages));
        expect(second).to.include('It is noon, I think.').and.include('You did not call a tool.');
        expect(first).not.to.include('You did not call a tool.');
      });

      it(`G32: is 400 after two responses without it: ${how}`, async () => {
        upstream.script(...responses(PROSE, PROSE));
        const { status, text, sent } = await send(model, stream);
        expect([status, sent.length], text).to.deep.equal([400, 2]);
        const { error } = JSON.parse(text) as { error: JsonObject };
        expect(error).to.include({ param: 'tool_choice', code: 'invalid_request' });
        expect(error['message']).to.include('got two responses without one');
      });

      it(`G32: is not asked for again when the response has it: ${how}`, async () => {
        upstream.script(...responses(CALL, PROSE));
        const { text, sent } = await send(model, stream);
        expect([sent.length, read(text, stream)]).to.deep.equal([1, { text: 'Looking.', calls: ['now'], tokens: 20 }]);
      });

      it(`G32: is not asked for again after a limit has cut the response: ${how}`, async () => {
        upstream.script(...responses(CUT, CALL));
        const { text, sent } = await send(model, stream);
        expect([sent.length, read(text, stream).text]).to.deep.equal([1, 'It is noon, I think.']);
      });
    }

  for (const stream of [false, true])
    it(`G32: must be a call of the named tool, ${stream ? 'streamed' : 'whole'}`, async () => {
      upstream.script(...responses(OTHER, CALL));
      const { text, sent } = await send(MODELS[0], stream, NAMED);
      expect(read(text, stream).calls, text).to.deep.equal(['now']);
      expect(JSON.stringify(sent[1]?.['messages'])).to.include('Answer by calling the tool `now` now.');
    });

  it('G32: is one thing, and a free choice another: text is delivered', async () => {
    upstream.script(...responses(PROSE, CALL));
    const { text, sent } = await send(MODELS[0], false, { tool_choice: 'auto' });
    expect([sent.length, read(text, false).text]).to.deep.equal([1, 'It is noon, I think.']);
  });

  for (const stream of [false, true])
    it(`G32: comes from the alias’s next target, which can be forced, ${stream ? 'streamed' : 'whole'}`, async () => {
      upstream.script(...responses(PROSE, PROSE));
      other.script(...responses(CALL));
      const { text, sent, headers } = await send('either', stream);
      expect([sent.length, read(text, stream).calls], text).to.deep.equal([2, ['now']]);
      expect(headers.get('x-tollgate-provider')).to.equal('openai');
      const forced = other.requests.at(-1)?.json() as JsonObject;
      expect([forced['tool_choice'], JSON.stringify(forced).includes('You did not call')]).to.deep.equal([
        'required',
        false,
      ]);
    });

  it('G32: is charged for both requests, also when neither response has it', async () => {
    const spent = async () => (await settledBooks(gateway.url, gateway.key)).spent;
    for (const stream of [false, true])
      for (const second of [CALL, PROSE]) {
        const before = await spent();
        upstream.script(...responses(PROSE, second));
        await send(MODELS[0], stream);
        // Twice 20 tokens read and 5 written.
        expect((await spent()) - before).to.equal(60);
      }
  });

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole';

    it(`G32: is asked for once more at the second target of a hedged alias, ${how}`, async () => {
      const { spent: before } = await settledBooks(gateway.url, gateway.key);
      slow.script((connection) => connection.hang());
      upstream.script(...responses(PROSE, CALL));
      const { text, sent, headers } = await send('hedged', stream);
      expect([sent.length, read(text, stream)], text).to.deep.equal([
        2,
        { text: 'Looking.', calls: ['now'], tokens: 40 },
      ]);
      expect(headers.get('x-tollgate-provider')).to.equal('moonshot');
      // Both requests of the second target, and what the first may have cost.
      expect((await settledBooks(gateway.url, gateway.key)).spent - before).to.be.greaterThan(60);
    });

    it(`G32: comes from the slower target of a hedged alias if the other has two responses without it, ${how}`, async () => {
      const from = upstream.requests.length;
      slow.script(async (connection) => {
        await upstream.request(from + 1);
        await responses(CALL)[0]?.(connection);
      });
      upstream.script(...responses(PROSE, PROSE));
      const { text, headers } = await send('hedged', stream);
      expect(read(text, stream).calls, text).to.deep.equal(['now']);
      expect(headers.get('x-tollgate-provider')).to.equal('slow');
      await settledBooks(gateway.url, gateway.key);
    });

    it(`G32: is not asked for again if the budget covers one request only, ${how}`, async () => {
      /** Maximum cost of the first request, in millionths of a dollar. */
      let reserved = 0;
      const more = { max_tokens: 10 };
      upstream.script(async (connection) => {
        reserved = (await readBooks(gateway.url, gateway.key)).held;
        await responses(CALL)[0]?.(connection);
      });
      await send(MODELS[0], stream, more);
      const budget = ((reserved + 10) / 1_000_000).toFixed(6);
      const { api_key: key } = await gateway.command<{ api_key: string }>(
        ...(['keys', 'create', '--user', `short-${how}`, '--budget', budget] as const),
      );
      upstream.script(...responses(PROSE, CALL));
      const { status, text, sent } = await send(MODELS[0], stream, more, key);
      expect([status, sent.length], text).to.deep.equal([402, 1]);
      expect((JSON.parse(text) as { error: JsonObject }).error).to.include({ code: 'insufficient_balance' });
      // The first request is charged, and nothing stays reserved.
      const { spent, held } = await settledBooks(gateway.url, key);
      expect({ spent, held }).to.deep.equal({ spent: 30, held: 0 });
    });
  }
});
