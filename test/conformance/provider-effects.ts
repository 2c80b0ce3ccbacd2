import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { ChatRequest, HttpRequest } from '../../contract/index.ts';
import { SAMPLES } from './provider-samples.ts';
import { CALL, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/**
 * Fields with side effects at some vendor, each with a value that triggers one. A codec that sends such a field must
 * declare its effects.
 */
const ACTING: Readonly<Record<string, unknown>> = Object.freeze({
  compound_custom: { tools: { enabled_tools: ['web_search'] } },
  fallbacks: ['another-model'],
  mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'x' }],
  models: ['another-model'],
  plugins: [{ id: 'web' }],
  preset: 'a-preset',
  search_parameters: { mode: 'on' },
  search_settings: { country: 'france' },
  service_tier: 'priority',
  store: true,
  tools: [{ type: 'web_search' }],
  web_search_options: {},
});

/** Fields that some models of a vendor reject. */
const NOT_OF_ALL: readonly string[] = [
  ...['frequency_penalty', 'logit_bias', 'logprobs', 'n', 'prediction', 'presence_penalty', 'prompt_cache_retention'],
  ...['stop', 'temperature', 'top_logprobs', 'top_p', 'verbosity'],
];

const DOES: ReadonlySet<string> = new Set(['tool', 'model', 'price', 'stores', 'residency']);

/**
 * Tests that the provider declares the effects of its requests, and that an unknown model gets only fields that all
 * models accept.
 */
export function testEffects({ provider, kit }: ProviderSubject): void {
  const { describe, it } = findRunner();
  const { chat, effects: declared, transport, fields: table } = provider;
  if (!chat || transport) return;
  const effectsOf = (model: string) => (typeof declared === 'function' ? declared(model) : declared);
  const effects = effectsOf(CALL.model);
  const models = [CALL.model, ...(table?.variants ?? []).map(({ example }) => example.model)];
  const messages = [{ role: 'user', content: 'Hello' }] as const;
  const send = (model: string, fields: object): HttpRequest =>
    chat.request({ messages, model, ...fields } as ChatRequest, { ...CALL, model });

  describe('an effect at the vendor', () => {
    it('is declared in `effects`, `{}` if there are none', () => {
      assert.ok(effects, 'the provider has `effects`');
      for (const model of models)
        for (const [field, rules] of Object.entries(effectsOf(model) ?? {}))
          for (const { does, at = '', values } of rules) {
            assert.ok(DOES.has(does), `effects.${field} does something that is known`);
            assert.match(at, /^(?:(?:\[\]|\*|\w+)(?:\.(?:\[\]|\*|\w+))*)?$/, `effects.${field}.at is a path`);
            assert.ok(
              values === undefined || !(values.global || values.sticky),
              `effects.${field}.values keeps no state`,
            );
          }
    });

    for (const [field, value] of Object.entries(ACTING))
      it(`is declared for ${field}, if that is sent`, () => {
        for (const model of models) {
          const body = sentOf(() => send(model, { [field]: value }));
          if (body && field in body && JSON.stringify(body).includes(JSON.stringify(value).slice(1, -1)))
            assert.ok(
              (effectsOf(model)?.[field]?.length ?? 0) > 0,
              `${field} is sent for ${model}, and \`effects\` says nothing of it`,
            );
        }
      });
  });

  const known = (table?.variants ?? []).filter(({ example }) => Object.keys(example).length === 1);
  if (known.length === 0) return;
  describe('an unknown model', () => {
    const unknown = kit.unknownModel ?? CALL.model;
    for (const { when, example } of known)
      it(`gets no field that other models do not accept: ${when}`, () => {
        for (const field of NOT_OF_ALL) {
          const { value, requires: parallel = {} } = SAMPLES[field] ?? {};
          const [sent, plain] = [{ ...parallel, [field]: value }, parallel].map((fields) =>
            sentOf(() => send(unknown, fields)),
          );
          const taken = sentOf(() => send(example.model, { ...parallel, [field]: value }));
          // Skips a rejected or omitted field, and another wire format, which has other names.
          if (!sent || isDeepStrictEqual(sent, plain) || (taken && 'messages' in taken !== 'messages' in sent))
            continue;
          const untaken = sentOf(() => send(example.model, parallel));
          assert.ok(!isDeepStrictEqual(taken, untaken), `${field} is sent, though ${example.model} does not get it`);
        }
      });
  });
}

/** Returns the sent body; undefined if the request is rejected. */
function sentOf(make: () => HttpRequest): Readonly<Record<string, unknown>> | undefined {
  try {
    return make().body as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}
