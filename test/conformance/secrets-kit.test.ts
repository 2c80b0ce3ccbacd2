import { expect } from 'chai';
import { definePlugin, type SecretsContext, type SecretsReader } from '../../contract/index.ts';
import { runKit } from '../support/plugins/run-kit.ts';
import { testSecrets } from './secrets.ts';

const [URL_, TOKEN, TEXT] = ['https://safe.example', 'token-of-the-gateway-4711', 'sk-of-the-safe-4711'];

/** Secrets manager with this `read`. */
const safe = (read: (name: string, context: SecretsContext) => Promise<string>, againMs = 300_000) =>
  definePlugin({
    ...{ name: 'safe', kind: 'secrets', apiVersion: 1 },
    setup() {},
    secrets: (_config, context): SecretsReader => ({
      read: async (name) => ({ text: await read(name, context), againMs }),
    }),
  });

const send = async ({ http }: SecretsContext, name: string, options: object = {}): Promise<string> => {
  const client = await http();
  const { body } = await client(`${URL_}/secrets/${encodeURIComponent(name)}`, {
    ...{ headers: { authorization: `Bearer ${TOKEN}` }, responseType: 'text', throwHttpErrors: false, ...options },
  });
  return String(body);
};
const textOf = (body: string): string => {
  const found = /^\{"value":"([^"]+)"\}$/.exec(body)?.[1];
  if (found === undefined) throw new Error('the safe gives no secret');
  return found;
};

const problems = async (plugin: ReturnType<typeof safe>): Promise<string> =>
  (
    await runKit((runner) =>
      testSecrets({
        ...{ plugin, runner, secrets: [TOKEN], missing: ['none'], right: [{ name: 'openai', text: TEXT }] },
        respond: ({ url }) =>
          url.startsWith(`${URL_}/secrets/openai`)
            ? { body: { value: TEXT } }
            : { status: 404, body: { error: 'none' } },
      }),
    )
  )
    .map(({ title, message }) => `${title}: ${message}`)
    .join('\n');

describe('the kit for managers of secrets', () => {
  it('finds nothing wrong with one that is right', async () => {
    expect(await problems(safe(async (name, context) => textOf(await send(context, name))))).to.equal('');
  });

  const WRONG: readonly (readonly [what: string, plugin: ReturnType<typeof safe>, title: RegExp])[] = [
    ['takes anything for a secret', safe((name, context) => send(context, name)), /there is no such secret/],
    [
      'repeats the text of the vendor',
      safe(async (name, context) => {
        const body = await send(context, name);
        throw new Error(`the safe says ${body}`);
      }),
      /a secret is in an error/,
    ],
    [
      'says who it is in an address',
      safe(async (name, context) => textOf(await send(context, name, { searchParams: { token: TOKEN } }))),
      /a secret is in an address/,
    ],
    [
      'writes to the log what it read',
      safe(async (name, context) => {
        const text = textOf(await send(context, name));
        context.log.info({ text }, 'read');
        return text;
      }),
      /a secret is in the log/,
    ],
    [
      'waits for ever',
      safe(async (name, context) => textOf(await send(context, name, { timeout: { request: undefined } }))),
      /it is waited for Infinity ms/,
    ],
    [
      'follows a name to another place',
      safe(async (name, context) => {
        const client = await context.http();
        const url = name.startsWith('https://') ? name : `${URL_}/secrets/${encodeURIComponent(name)}`;
        return textOf(await client(url, { throwHttpErrors: false }).text());
      }),
      /a reference leads to another place/,
    ],
    [
      'follows a name out of its folder',
      safe(async (name, context) => {
        const client = await context.http();
        return textOf(await client(`${URL_}/secrets/${name}`, { throwHttpErrors: false }).text());
      }),
      /a reference leads out of its folder/,
    ],
    [
      'fails by a bug',
      safe(async (name, context) => (JSON.parse(await send(context, name)) as { value: string }).value.trim()),
      /that is a bug, and no reason/,
    ],
    ['reads again in the past', safe(async (name, context) => textOf(await send(context, name)), -1), /againMs is -1/],
  ];
  for (const [what, plugin, title] of WRONG)
    it(`finds one that ${what}`, async () => expect(await problems(plugin)).to.match(title));
});
