import { createHmac, timingSafeEqual } from 'node:crypto';
import { expect } from 'chai';
import { type AuthRequest, definePlugin, GatewayError, type Plugin } from '../../contract/index.ts';
import { runKit } from '../support/plugins/run-kit.ts';
import { testAuth } from './auth.ts';

const NOW = 1_790_000_000_000;
const BODY = Buffer.from('{"model":"m"}');

interface Signed {
  readonly method: string;
  readonly path: string;
  readonly time: string;
  readonly body: Uint8Array;
}
const sign = ({ method, path, time, body }: Signed): string =>
  createHmac('sha256', 'secret').update([method, path, time, ''].join('\n')).update(body).digest('hex');

/** Mistakes of a plugin that checks signatures. */
interface Mistakes {
  readonly compares?: boolean;
  readonly signs?: Partial<Signed>;
  readonly checksTime?: boolean;
}

const signed = ({ compares = true, signs = {}, checksTime = true }: Mistakes = {}): Plugin =>
  definePlugin({
    name: 'signed',
    kind: 'auth',
    apiVersion: 1,
    setup(api) {
      api.hook('authenticate', async ({ headers, method, path, now, rawBody }: AuthRequest) => {
        const [given, time] = [String(headers['x-signature'] ?? ''), String(headers['x-time'] ?? '')];
        if (given === '') return undefined;
        const right = Buffer.from(sign({ method, path, time, body: await rawBody(), ...signs }));
        const sent = Buffer.from(given);
        const isLate = checksTime && !(Math.abs(now - Number(time)) < 300_000);
        if (isLate || (compares && (sent.length !== right.length || !timingSafeEqual(sent, right))))
          throw new GatewayError('invalid_api_key', 'The signature is wrong.');
        return { credential: 'key', userId: 'signer', account: 'signer' };
      });
    },
  });

const titlesOf = async (mistakes: Mistakes, unsigned?: readonly ('method' | 'path' | 'body' | 'time')[]) => {
  const parts = { method: 'POST', path: '/v1/chat/completions', time: String(NOW), body: BODY };
  const headers = { 'x-signature': sign({ ...parts, ...mistakes.signs }), 'x-time': parts.time };
  const sample = {
    ...{ credential: '', request: { headers, now: NOW }, body: BODY, principal: { userId: 'signer' } },
    ...(unsigned && { unsigned }),
  };
  const failed = await runKit((runner) => testAuth({ plugin: signed(mistakes), right: [sample], runner }));
  return failed.map(({ title }) => title).join('\n');
};

describe('G71: the kit of auth plugins changes each part of a signed request', () => {
  it('finds nothing wrong with a plugin that checks all of them', async () => {
    expect(await titlesOf({})).to.equal('');
  });

  for (const [what, mistakes, title] of [
    ['never compares the signature', { compares: false }, /another header x-signature/],
    ['does not sign the method', { signs: { method: '' } }, /another method/],
    ['does not sign the path', { signs: { path: '' } }, /another path/],
    ['does not sign the body', { signs: { body: new Uint8Array() } }, /another body/],
    ['does not sign the time', { signs: { time: '' }, checksTime: false }, /another time, a day later/],
    ['signs the time and does not check it', { checksTime: false }, /another time, a day earlier/],
  ] as const)
    it(`fails one that ${what}`, async () => {
      expect(await titlesOf(mistakes)).to.match(title);
    });

  it('accepts a scheme that declares what it does not sign', async () => {
    expect(await titlesOf({ signs: { path: '', method: '' } }, ['path', 'method'])).to.equal('');
  });
});
