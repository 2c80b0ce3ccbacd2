import { expect } from 'chai';
import {
  type ChatChunk,
  type ChatDelta,
  type ChatResponse,
  definePlugin,
  GatewayError,
  isObject,
  type Operation,
  type Plugin,
  type PluginApi,
} from '../../contract/index.ts';
import { runKit } from '../support/plugins/run-kit.ts';
import { type AuthKit, testAuth } from './auth.ts';
import { type OperationKit, testOperation } from './operation.ts';
import { testPlugin } from './plugin.ts';
import { type PolicyKit, testPolicy } from './policy.ts';

type Titles = (kit: Parameters<typeof runKit>[0]) => Promise<string>;
const titlesOf: Titles = async (kit) =>
  (await runKit(kit)).map(({ title, message }) => `${title}: ${message}`).join('\n');

const policy = (setup: (api: PluginApi) => void, more: Partial<Plugin> = {}): Plugin =>
  definePlugin({ name: 'guard', kind: 'policy', apiVersion: 1, setup, ...more });

const SECRET = /orion/gi;
/** Longest text that may continue in the next chunk. */
const HELD = 'orion'.length - 1;

const hideIn = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll(SECRET, '…')) as T;

/** Hides a word in all model output; `places` are the fields of a delta that it checks. */
function hiding(places: readonly ('content' | 'reasoning_content' | 'refusal' | 'arguments')[] = ALL, hold = HELD) {
  return (api: PluginApi): void => {
    api.hook('receive', (_call, response) => hideIn(response as ChatResponse));
    api.hook('stream', () => {
      const held = new Map<string, { text: string; readonly chunk: (text: string) => ChatChunk }>();
      const pass = (key: string, text: string, chunk: (said: string) => ChatChunk): readonly ChatChunk[] => {
        const all = ((held.get(key)?.text ?? '') + text).replaceAll(SECRET, '…');
        const cut = Math.max(all.length - hold, 0);
        held.set(key, { text: all.slice(cut), chunk });
        return cut === 0 ? [] : [chunk(all.slice(0, cut))];
      };
      return {
        push(chunk) {
          const [choice] = chunk.choices;
          if (!choice) return [chunk];
          const of = (delta: ChatDelta): ChatChunk => ({ ...chunk, choices: [{ ...choice, delta }] });
          for (const place of ['content', 'reasoning_content', 'refusal'] as const) {
            const text = choice.delta[place];
            if (text && places.includes(place))
              return pass(`${choice.index}${place}`, text, (said) => of({ [place]: said }));
          }
          const [call] = choice.delta.tool_calls ?? [];
          const text = call?.function?.arguments;
          if (!call || !text || call.id || !places.includes('arguments')) return [chunk];
          return pass(`${choice.index}call${call.index}`, text, (said) =>
            of({ tool_calls: [{ index: call.index, function: { arguments: said } }] }),
          );
        },
        end: () => [...held.values()].filter(({ text }) => text !== '').map(({ text, chunk }) => chunk(text)),
      };
    });
  };
}
const ALL = ['content', 'reasoning_content', 'refusal', 'arguments'] as const;

function refusing(where: (messages: string) => boolean, message = 'This may not be said here.') {
  return (api: PluginApi): void =>
    api.hook('prepare', (_call, request) => {
      const { messages } = request as { readonly messages: readonly object[] };
      if (where(JSON.stringify(messages))) throw new GatewayError('content_filtered', message);
      return undefined;
    });
}

describe('the kit for policies', () => {
  const titles = (kit: Omit<PolicyKit, 'runner'>): Promise<string> =>
    titlesOf((runner) => testPolicy({ ...kit, runner }));

  it('finds nothing wrong with policies that are right', async () => {
    expect(await titles({ plugin: policy(hiding()), hides: ['orion'], lets: ['A quiet day.'] })).to.equal('');
    const guard = policy(refusing((text) => text.toLowerCase().includes('orion')));
    expect(await titles({ plugin: guard, refuses: ['Orion'], lets: ['A quiet day.'] })).to.equal('');
  });

  const WRONG: readonly (readonly [what: string, kit: Omit<PolicyKit, 'runner'>, title: RegExp])[] = [
    [
      'leaks reasoning',
      { plugin: policy(hiding(['content', 'refusal', 'arguments'])), hides: ['orion'] },
      /hides "orion": it is seen streamed, in the reasoning/,
    ],
    [
      'leaks arguments of tools',
      { plugin: policy(hiding(['content', 'reasoning_content', 'refusal'])), hides: ['orion'] },
      /it is seen streamed, in the arguments/,
    ],
    ['does not hold back', { plugin: policy(hiding(ALL, 0)), hides: ['orion'] }, /it is seen streamed, in the content/],
    [
      'changes whole responses alone',
      {
        plugin: policy((api) => api.hook('receive', (_call, response) => hideIn(response as ChatResponse))),
        hides: ['orion'],
      },
      /the same with and without a stream/,
    ],
    [
      'never gives what it held back',
      {
        plugin: policy((api) =>
          api.hook('stream', () => {
            let last: ChatChunk | undefined;
            return {
              push(chunk) {
                const before = last;
                last = chunk;
                return before ? [before] : [];
              },
            };
          }),
        ),
      },
      /the same with and without a stream/,
    ],
    [
      'keeps the text of all streams in one place',
      {
        plugin: policy((api) => {
          const held: ChatChunk[] = [];
          api.hook('stream', () => ({
            push(chunk) {
              held.push(chunk);
              return held.length > 1 ? held.splice(0, 1) : [];
            },
            end: () => held.splice(0),
          }));
        }),
      },
      /concurrently with another one as it is alone/,
    ],
    [
      'throws what is no error of ours',
      {
        plugin: policy((api) =>
          api.hook(
            'prepare',
            (_call, request) => void decodeURIComponent(`%${JSON.stringify(request).length > 9000 ? 'x' : '41'}`),
          ),
        ),
      },
      /of hostile texts passes, or is refused with a GatewayError/,
    ],
    [
      'makes a success of an error',
      { plugin: policy((api) => api.hook('error', () => ({ status: 200 }) as never)) },
      /stay errors, with a gateway code/,
    ],
    [
      'gives back nothing when the caller left',
      {
        plugin: policy((api) => {
          let busy = 0;
          api.hook('admit', () => {
            if (busy > 0) throw new GatewayError('overloaded', 'One at a time.');
            busy++;
          });
          api.hook('finish', (_call, { status }) => {
            if (status !== 'aborted') busy = 0;
          });
        }),
      },
      /when it ended as "aborted"/,
    ],
    [
      'looks at the last message alone',
      { plugin: policy(refusing((text) => /orion"?\}\]$/i.test(text))), refuses: ['Orion'] },
      /refused in any message/,
    ],
    [
      'repeats what it refuses',
      {
        plugin: policy(refusing((text) => text.includes('Orion'), '"Orion" is not allowed here.')),
        refuses: ['Orion'],
      },
      /the refusal repeats the text/,
    ],
    [
      'refuses what it lets pass',
      { plugin: policy(refusing((text) => text.includes('quiet'))), lets: ['A quiet day.'] },
      /passes unchanged: A quiet day\./,
    ],
  ];
  for (const [what, kit, title] of WRONG)
    it(`finds one that ${what}`, async () => expect(await titles(kit)).to.match(title));
});

describe('the kit for auth plugins', () => {
  const KNOWN: Readonly<Record<string, string>> = { 'team-blue-4711': 'blue', 'team-green-0815': 'green' };
  const team = (
    look: (credential: string, api: PluginApi) => string | undefined,
    more: Partial<Plugin> = {},
    account = (userId: string) => userId,
  ): Plugin =>
    definePlugin({
      ...{ name: 'team-token', kind: 'auth', apiVersion: 1 },
      isCredential: (text: string) => text.startsWith('team-'),
      setup(api: PluginApi) {
        api.hook('authenticate', ({ credential }) => {
          if (!credential.startsWith('team-')) return undefined;
          const userId = look(credential, api);
          if (userId === undefined) throw new GatewayError('invalid_api_key', 'There is no such team.');
          return { credential: 'key', userId, account: account(userId) };
        });
      },
      ...more,
    } as Plugin);
  const right: AuthKit['right'] = Object.entries(KNOWN).map(([credential, userId]) => ({
    credential,
    principal: { userId },
  }));
  const known = (credential: string): string | undefined =>
    Object.hasOwn(KNOWN, credential) ? KNOWN[credential] : undefined;
  const titles = (plugin: Plugin): Promise<string> => titlesOf((runner) => testAuth({ plugin, right, runner }));

  it('finds nothing wrong with one that is right', async () => expect(await titles(team(known))).to.equal(''));

  const WRONG: readonly (readonly [what: string, plugin: Plugin, title: RegExp])[] = [
    [
      'compares the beginning alone',
      team((text) => Object.entries(KNOWN).find(([key]) => text.startsWith(key))?.[1]),
      /with a wrong one is rejected/,
    ],
    ['takes any case', team((text) => known(text.toLowerCase())), /team-|is taken for/i],
    ['knows everybody', team(() => 'blue'), /is taken for/],
    ['tells one for another', team((text) => known(text) && 'blue'), /is identified, number 2: userId/],
    [
      'repeats the credential',
      team((text) => {
        if (known(text)) return known(text);
        throw new GatewayError('invalid_api_key', `Unknown credential ${text}.`);
      }),
      /the error repeats it/,
    ],
    [
      'logs the credential',
      team((text, api) => {
        api.log.info({ credential: text }, 'who is that?');
        return known(text);
      }),
      /a credential is in the log/,
    ],
    [
      'breaks on what it does not know',
      team((text) => {
        const found = known(text);
        if (found === undefined) throw new TypeError('x is undefined');
        return found;
      }),
      /throws no error of ours/,
    ],
    [
      'books to an account that is the credential',
      team(known, {}, (userId) => Object.entries(KNOWN).find(([, id]) => id === userId)?.[0] ?? ''),
      /the principal holds the credential/,
    ],
    ['calls nothing a credential', team(known, { isCredential: () => true }), /nothing is no credential/],
  ];
  for (const [what, plugin, title] of WRONG)
    it(`finds one that ${what}`, async () => expect(await titles(plugin)).to.match(title));
});

describe('the kit for operations', () => {
  interface Rerank {
    readonly documents: readonly string[];
  }
  const plugin = (change: object = {}): Plugin =>
    definePlugin({
      ...{ name: 'rerank', kind: 'operation', apiVersion: 1 },
      setup(api: { operation(definition: object): void }) {
        api.operation({
          name: 'rerank' as Operation,
          request: {
            type: 'object',
            required: ['documents'],
            properties: { documents: { type: 'array', items: { type: 'string' } } },
          },
          estimate: ({ documents }: Rerank) => ({ units: { documents: documents.length }, cost: undefined }),
          async attempt({
            request,
            offer,
            sendForJson,
            meter,
          }: {
            request: Rerank;
            offer: Offer;
            sendForJson: Send;
            meter: Meter;
          }) {
            const response = offer.codec.response(await sendForJson({ path: '/rerank', body: request }));
            meter({ units: { documents: request.documents.length }, cost: undefined });
            return response;
          },
          isResponse: (value: unknown) => isObject(value) && Array.isArray(value['scores']),
          ...change,
        });
      },
    } as unknown as Plugin);
  interface Offer {
    readonly codec: { response(body: unknown): object };
  }
  type Send = (request: object) => Promise<unknown>;
  type Meter = (metered: object) => void;
  const offer: Offer = {
    codec: {
      response(body) {
        if (!isObject(body) || !Array.isArray(body['data']))
          throw new GatewayError('provider_unavailable', 'No scores.');
        return { scores: body['data'] };
      },
    },
  };
  const samples: OperationKit['samples'] = [
    { request: { documents: ['a'] }, vendor: { data: [0.5] }, response: { scores: [0.5] }, units: { documents: 1 } },
    { request: { documents: ['a', 'b'] }, vendor: { data: [1, 0] }, response: { scores: [1, 0] } },
  ];
  const titles = (one: Plugin, with_ = offer): Promise<string> =>
    titlesOf((runner) => testOperation({ plugin: one, offer: with_, samples, runner }));

  it('finds nothing wrong with one that is right', async () => expect(await titles(plugin())).to.equal(''));

  let calls = 0;
  const WRONG: readonly (readonly [what: string, plugin: Plugin, title: RegExp, offer?: Offer])[] = [
    ['takes anything for a request', plugin({ request: {} }), /refuses an invalid request/],
    [
      'estimates something else each time',
      plugin({ estimate: () => ({ units: { calls: calls++ }, cost: undefined }) }),
      /repeatably/,
    ],
    [
      'estimates half tokens',
      plugin({ estimate: () => ({ units: { tokens: 0.5 }, cost: undefined }) }),
      /tokens is a whole number/,
    ],
    [
      'meters nothing',
      plugin({
        attempt: async ({ offer: own, sendForJson }: { offer: Offer; sendForJson: Send }) =>
          own.codec.response(await sendForJson({ path: '/x' })),
      }),
      /it is metered/,
    ],
    [
      'breaks on what a vendor says',
      plugin(),
      /throws neither a StreamFailure/,
      { codec: { response: (body) => ({ scores: (body as { data: unknown[] }).data.map((score) => score) }) } },
    ],
    [
      'passes garbage on',
      plugin(),
      /what is made of garbage is no response/,
      { codec: { response: (body) => ({ scores: (body as { data?: unknown } | null)?.data }) } },
    ],
    ['takes anything for a response', plugin({ isResponse: () => true }), /detects an invalid response/],
    [
      'swallows an end',
      plugin({
        async attempt({ offer: own, sendForJson, meter }: { offer: Offer; sendForJson: Send; meter: Meter }) {
          meter({ units: {}, cost: undefined });
          return own.codec.response(await sendForJson({ path: '/x' }).catch(() => ({ data: [] })));
        },
      }),
      /fails with the error of the vendor, the network or the caller/,
    ],
  ];
  for (const [what, one, title, with_] of WRONG)
    it(`finds one that ${what}`, async () => expect(await titles(one, with_)).to.match(title));
});

describe('the kit for plugins of any kind', () => {
  const titles = (plugin: Plugin, config = {}): Promise<string> =>
    titlesOf((runner) => testPlugin({ plugin, config, runner }));
  const OPTIONS = {
    type: 'object',
    additionalProperties: false,
    properties: { token: { type: 'string', secret: true, description: 'The token of the other server.' } },
  } as const;

  it('finds nothing wrong with one that is right', async () => {
    expect(
      await titles(
        policy(() => undefined, { configSchema: OPTIONS }),
        { token: 't' },
      ),
    ).to.equal('');
  });

  let set = 0;
  const WRONG: readonly (readonly [what: string, plugin: Plugin, title: RegExp])[] = [
    [
      'takes options that it does not know',
      policy(() => undefined, { configSchema: { type: 'object', properties: {} } }),
      /additionalProperties: false/,
    ],
    [
      'does not describe an option',
      policy(() => undefined, { configSchema: { ...OPTIONS, properties: { url: { type: 'string' } } } }),
      /options without a description/,
    ],
    [
      'logs a secret',
      policy(() => undefined, {
        configSchema: OPTIONS,
        setup: (api: PluginApi, config: object) => api.log.info(config, 'set up'),
      } as Partial<Plugin>),
      /a secret option is in the log/,
    ],
    [
      'is set up once only',
      policy((api) => (set++ === 0 ? api.hook('admit', () => undefined) : undefined)),
      /with the same result/,
    ],
    [
      'has a command that it does not name',
      policy((api) => api.command({ name: 'greet', summary: 'Greets', async run() {} } as never)),
      /`commands` does not name/,
    ],
    ['writes to the console', policy(() => console.log('here I am')), /nothing to the console/],
    ['asks the environment', policy(() => void process.env['GUARD_TOKEN']), /reads no environment variable/],
    ['has a name of its own kind', policy(() => undefined, { name: 'My Guard' }), /named in kebab-case/],
  ];
  for (const [what, plugin, title] of WRONG)
    it(`finds one that ${what}`, async () => expect(await titles(plugin)).to.match(title));
});
