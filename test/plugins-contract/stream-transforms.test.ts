import { expect } from 'chai';
import { type FailureRig, startFailureRig } from '../support/gateways/failure-rig.ts';
import { pluginFile, readText, routeText } from '../support/plugins/plugin-file.ts';
import { delta, events } from '../support/vendors/openai-vendor.ts';
import { chunk, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** Helpers that these tests' transforms share. */
const HELP = `
  const textOf = (chunk) => chunk.choices[0]?.delta.content ?? '';
  const withText = (chunk, content) => ({ ...chunk, choices: [{ ...chunk.choices[0], delta: { content } }] });
  const ended = [];
  ${routeText('/ended', 'ctx.body = ended.splice(0);')}
`;

/** Masks addresses; holds back the last word, which may be incomplete. */
const MASK = `${HELP}
  api.hook('stream', (call) => {
    let held = '';
    let last;
    const mask = (text) => text.replace(/[\\w.]+@[\\w.]+/g, '***');
    return {
      push(chunk) {
        last = chunk;
        held += textOf(chunk);
        const at = held.lastIndexOf(' ') + 1;
        const ready = held.slice(0, at);
        held = held.slice(at);
        return ready === '' ? [] : [withText(chunk, mask(ready))];
      },
      end() {
        ended.push(call.request.user ?? 'missing');
        return held === '' ? [] : [withText(last, mask(held))];
      },
    };
  });`;

const USAGE = JSON.stringify({
  ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [] },
  usage: { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 },
});
const STOP = delta('', 'stop');
const textIn = (frames: readonly string[]): string =>
  frames
    .filter((frame) => frame.startsWith('{') && !frame.startsWith('{"error"'))
    .map(
      (frame) => (JSON.parse(frame) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? '',
    )
    .join('');

describe('a transform of a stream', () => {
  let rig: FailureRig;
  const begin = async (...setups: readonly string[]): Promise<void> => {
    const files = Object.fromEntries(setups.map((setup, at) => [`p${at}.mjs`, pluginFile({ setup })]));
    rig = await startFailureRig({ plugins: Object.keys(files).map((file) => `./${file}`) }, { files });
  };
  const ended = async () => (await (await rig.gateway.post('/ended', undefined)).json()) as readonly string[];
  afterEach(() => rig.stop());

  it('keeps its state: an e-mail address that is split between chunks is masked', async () => {
    await begin(MASK);
    for (const words of [
      ['write to ann@exa', 'mple.org now'],
      ['write to a', 'nn@', 'example.org', ' now'],
      ['write to ann@example.org now'],
    ]) {
      rig.vendor.script(events([...words.map((text) => delta(text)), STOP, USAGE, '[DONE]']));
      const { frames } = await rig.send({ stream: true });
      expect(textIn(frames)).to.equal('write to *** now');
    }
  });

  it('sends held-back text before the finish and usage chunks', async () => {
    await begin(MASK);
    rig.vendor.script(events([delta('mail ann@'), delta('example.org', 'stop'), USAGE, '[DONE]']));
    const { frames } = await rig.send({ stream: true, stream_options: { include_usage: true } });
    const shown = frames.map((frame) => {
      if (!frame.startsWith('{')) return frame;
      const { choices, usage } = JSON.parse(frame) as {
        choices: { delta: object; finish_reason: string | null }[];
        usage?: object;
      };
      return usage ? 'usage' : (choices[0]?.finish_reason ?? 'text');
    });
    expect(shown).to.deep.equal(['text', 'text', 'stop', 'usage', '[DONE]']);
    expect(textIn(frames)).to.equal('mail ***');
    expect(await ended()).to.deep.equal(['missing']);
  });

  it('sends held-back text before the error of an interrupted provider', async () => {
    await begin(MASK);
    rig.vendor.script(events([delta('so far ann@'), delta('example.org')], (wire) => wire.reset()));
    const heard = await rig.send({ stream: true });
    rig.expectError(heard, 'provider_unavailable');
    expect(textIn(heard.frames)).to.equal('so far ***');
    expect(await ended()).to.deep.equal(['missing']);
  });

  it('is not ended when the caller disconnects', async () => {
    await begin(MASK);
    rig.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('one two ')}\n\n`));
      await wire.hang();
    });
    const leaving = new AbortController();
    const response = await fetch(`${rig.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'one/m', stream: true, messages: [{ role: 'user', content: 'x' }] }),
    });
    await response.body?.getReader().read();
    leaving.abort();
    await eventually(async () => expect(rig.gateway.logText()).to.include('"outcome":"aborted"'));
    expect(await ended()).to.deep.equal([]);
  });

  it('is created for each call: concurrent streams hold their text separately', async () => {
    await begin(MASK);
    const users = Array.from({ length: 10 }, (_, n) => `user${n}`);
    rig.vendor.script(async (wire) => {
      const { user } = wire.request.json() as { user: string };
      await wire.send(SSE_HEAD);
      for (const part of ['for ', user.slice(0, 3), user.slice(3), ' and ann@', 'example.org']) {
        await wire.send(chunk(`data: ${delta(part)}\n\n`));
        await wire.pause(5);
      }
      await wire.send(chunk(`data: ${STOP}\n\n`));
      await wire.send('0\r\n\r\n');
    });
    const texts = await Promise.all(users.map(async (user) => textIn((await rig.send({ stream: true, user })).frames)));
    expect(texts).to.deep.equal(users.map((user) => `for ${user} and ***`));
    expect(await ended()).to.have.members(users);
  });

  it('may be asynchronous: chunks keep their order', async () => {
    await begin(
      `${HELP} let n = 0; api.hook('stream', () => ({ async push(chunk) { n += 1; await new Promise((resolve) => setTimeout(resolve, n % 3 === 0 ? 0 : 15)); return [chunk]; } }));`,
    );
    const words = Array.from({ length: 12 }, (_, n) => `${n} `);
    rig.vendor.script(events([...words.map((text) => delta(text)), STOP, '[DONE]']));
    expect(textIn((await rig.send({ stream: true })).frames)).to.equal(words.join(''));
  });

  it('that throws ends the stream, and no held-back text is sent after it', async () => {
    const guard = `${HELP}
      api.hook('stream', () => {
        let held = [];
        return {
          push(chunk) {
            held.push(chunk);
            if (held.map(textOf).join('').includes('forbidden')) throw new GatewayError('content_filtered', 'Not this.');
            return held.length > 2 ? [held.shift()] : [];
          },
          end() { ended.push('guard'); return held; },
        };
      });`;
    await begin(guard);
    rig.vendor.script(events([...['a ', 'b ', 'for', 'bidden', ' c'].map((text) => delta(text)), STOP, '[DONE]']));
    const heard = await rig.send({ stream: true });
    rig.expectError(heard, 'content_filtered', 400);
    expect(textIn(heard.frames)).to.equal('a ');
    expect(await ended()).to.deep.equal([]);
  });

  it('whose creation throws fails the call, and disconnects from the provider', async () => {
    await begin(
      `${HELP} api.hook('stream', (call) => { if (call.request.user === 'no') throw new Error('not made'); return undefined; });`,
    );
    rig.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('one')}\n\n`));
      await wire.hang();
    });
    rig.expectError(await rig.send({ stream: true, user: 'no' }), 'internal_error', 500);
    await eventually(async () => expect(rig.vendor.connections.open).to.equal(0));
  });

  it('of several plugins pass a chunk on from the last to the first, including held-back text', async () => {
    const hold = (mark: string) =>
      `${HELP.replaceAll("'/ended'", `'/ended-${mark}'`)} api.hook('stream', () => { const held = []; return { push(chunk) { held.push(withText(chunk, textOf(chunk) + '${mark}')); return []; }, end: () => held.splice(0) }; });`;
    await begin(hold('1').replaceAll('/ended-1', '/e1'), hold('2').replaceAll('/ended-2', '/e2'));
    rig.vendor.script(events([delta('a'), delta('b'), STOP, '[DONE]']));
    expect(textIn((await rig.send({ stream: true })).frames)).to.equal('a21b21');
  });

  it('also sees streams of plugins’ own calls', async () => {
    await begin(
      `${MASK} ${routeText(
        '/relay',
        `let text = ''; const { principal, requestId, signal } = ctx.state;
         for await (const chunk of await api.chat({ model: 'one/m', stream: true, messages: [{ role: 'user', content: 'x' }] }, { principal, requestId, signal })) text += textOf(chunk);
         ctx.body = { text };`,
        `['key']`,
      )}`,
    );
    rig.vendor.script(events([delta('ann@'), delta('example.org'), STOP, '[DONE]']));
    expect(await readText(await rig.gateway.post('/relay', undefined))).to.equal('{"text":"***"}');
  });
});
