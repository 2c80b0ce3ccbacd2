import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import {
  type Attempt,
  type AttemptResponse,
  GatewayError,
  type HttpRequest,
  isGatewayError,
  type Metered,
  type Offer,
  type OperationDefinition,
  type Plugin,
  type ReportedUsage,
  StreamFailure,
} from '../../contract/index.ts';
import { completeOperation, type WholeOperation } from '../../core/calls/declared-operation.ts';
import { priceUsage } from '../../core/calls/operation-usage.ts';
import { createRequestSchemas } from '../../core/plugins/registry.ts';
import { deepFreeze } from './deep-freeze.ts';
import { testDefinition } from './plugin.ts';
import { callOf, type PluginKit, setUpPlugin } from './plugin-subject.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';

/** Request, the vendor's response, and the expected result. */
export interface OperationSample {
  readonly request: object;
  /** Vendor's body: JSON, or bytes. */
  readonly vendor: unknown;
  readonly response: unknown;
  /** Expected metered units; not checked by default. */
  readonly units?: Metered['units'];
}

/** Options of {@link testOperation}. */
export interface OperationKit extends PluginKit {
  /** Provider's offer for the operation, with its codec; `{}` if the operation needs none. */
  readonly offer?: object;
  readonly samples: readonly OperationSample[];
}

type Definition = WholeOperation<never>;

const TARGET = Object.freeze({ provider: 'conformance', model: 'conformance-model' });
const GARBAGE: readonly unknown[] = [null, 1, 'text', '<html>', [], {}, { error: { message: 'no' } }, { data: null }];

/**
 * Runs the tests that every operation must pass. Its schema accepts the samples, and the maximum cost is known before
 * the request is sent. A vendor's response becomes the gateway's, and any other response is a failure.
 *
 * ```ts
 * import { testOperation } from 'tollgate/conformance';
 * import rerank from '../rerank.ts';
 * import { codec } from '../acme.ts';
 * testOperation({
 *   plugin: rerank,
 *   offer: { codec },
 *   samples: [{ request: { model: 'm', query: 'q', documents: ['a'] }, vendor: { data: [0.5] }, response: { scores: [0.5] } }],
 * });
 * ```
 */
export function testOperation(kit: OperationKit): void {
  const { describe, it } = findRunner(kit.runner);
  describe(`the operation ${nameOf(kit.plugin)}: what every operation promises`, () => {
    requirePlugin(kit.plugin, 'operation');
    const { samples } = kit;
    if (!Array.isArray(samples) || samples.length === 0)
      throw new Error('the kit’s `samples` is empty: give at least one { request, vendor, response }');
    const definitions: Definition[] = [];
    const plugin: Plugin = {
      ...kit.plugin,
      setup: (api, config) => setUpOperation(kit.plugin, definitions, api, config),
    };
    testDefinition({ ...kit, plugin }, async () => {
      const [sample, definition] = [samples[0], definitions.at(-1)];
      if (sample && definition)
        await definition.attempt(attemptOf(kit, definition, sample.request, sample.vendor, []) as never);
    });
    const withOperation = async (run: (definition: Definition) => Promise<void> | void): Promise<void> => {
      definitions.length = 0;
      const subject = await setUpPlugin({ ...kit, plugin });
      try {
        const [definition, ...more] = definitions;
        assert.ok(definition && more.length === 0, `it registers ${definitions.length} operations, not one`);
        await run(definition);
      } finally {
        await subject.close();
      }
    };
    const attempt = async (definition: Definition, request: object, vendor: unknown, failure?: Error) => {
      const metered: Metered[] = [];
      const given = attemptOf(kit, definition, request, vendor, metered, failure);
      return { response: (await definition.attempt(given as never)) as unknown, metered };
    };

    it('has a schema that accepts the samples, and refuses an invalid request', () =>
      withOperation(({ name, request }) => {
        const check = createRequestSchemas([]).compile(name, request, 'the request');
        for (const sample of samples) assert.equal(check(sample.request), true, JSON.stringify(sample.request));
        for (const body of [null, 1, 'text', []]) assert.equal(check(body), false, JSON.stringify(body));
      }));
    it('returns the maximum usage of a request, repeatably, in whole units', () =>
      withOperation((definition) => {
        for (const { request } of samples) {
          const facts = { target: TARGET, offer: kit.offer ?? {}, model: undefined, price: undefined };
          const estimate = () => definition.estimate(deepFreeze(structuredClone(request)) as never, facts as never);
          assert.deepEqual(estimate(), estimate());
          assertMetered(estimate());
        }
      }));
    it('builds the response from a vendor’s, and meters it', () =>
      withOperation(async (definition) => {
        for (const sample of samples) {
          const { response, metered } = await attempt(definition, sample.request, sample.vendor);
          assert.deepEqual(response, sample.response);
          assert.equal(definition.isResponse(response), true, '`isResponse` knows it');
          const last = metered.at(-1);
          assert.ok(last, 'it is metered: call `bill` or `meter` before the attempt resolves');
          assertMetered(last);
          if (sample.units) assert.deepEqual(last.units, sample.units);
        }
      }));
    it('handles two concurrent requests like each alone', () =>
      withOperation(async (definition) => {
        const both = [...samples, ...samples].map((sample) => attempt(definition, sample.request, sample.vendor));
        const expected = [...samples, ...samples].map(({ response }) => response);
        assert.deepEqual(
          (await Promise.all(both)).map(({ response }) => response),
          expected,
        );
      }));
    for (const body of GARBAGE)
      it(`treats ${JSON.stringify(body)} of a vendor as a failure, or as a valid response`, () =>
        withOperation(async (definition) => {
          const [sample] = samples;
          const found = await attempt(definition, sample?.request ?? {}, body).catch((error: unknown) => error);
          if (found instanceof Error)
            return assert.ok(
              found instanceof StreamFailure || isGatewayError(found),
              `throws neither a StreamFailure nor an error of ours: ${String(found.stack)}`,
            );
          const { response } = found as { readonly response: unknown };
          assert.ok(!isDeepStrictEqual(response, body) || definition.isResponse(body), 'garbage is passed on');
          assert.equal(definition.isResponse(response), true, 'what is made of garbage is no response');
        }));
    it('fails with the error of the vendor, the network or the caller', () =>
      withOperation(async (definition) => {
        const [sample] = samples;
        for (const failure of [
          new GatewayError('provider_unavailable', 'The provider broke off.'),
          new DOMException('The caller left.', 'AbortError'),
        ])
          await assert.rejects(attempt(definition, sample?.request ?? {}, undefined, failure as Error));
      }));
    it('detects an invalid response', () =>
      withOperation((definition) => {
        for (const value of [undefined, null, 1, 'text', []])
          assert.equal(definition.isResponse(value), false, JSON.stringify(value));
      }));
  });
}

function setUpOperation(plugin: Plugin, definitions: Definition[], api: object, config: unknown): void | Promise<void> {
  const schemas = createRequestSchemas([]);
  const own = {
    ...api,
    operation(definition: OperationDefinition<never>) {
      const { response } = definition;
      const matches = response && schemas.compile(nameOf(plugin), response, 'the response');
      definitions.push(completeOperation(definition, matches));
    },
  };
  return plugin.setup(own as never, config as never);
}

function attemptOf(
  { offer = {} }: OperationKit,
  definition: Definition,
  request: object,
  vendor: unknown,
  metered: Metered[],
  failure?: Error,
): Attempt {
  const body = vendor instanceof Uint8Array ? Buffer.from(vendor) : Buffer.from(JSON.stringify(vendor) ?? '');
  const send = async (requested: HttpRequest): Promise<AttemptResponse> => {
    assert.match(requested.path, /^\/[^\s#]*$/, 'a request goes to a path below the base URL');
    if (failure) throw failure;
    return {
      ...{ status: 200, headers: { 'content-type': 'application/json' }, readAll: async () => body, destroy() {} },
      body: (async function* () {
        yield body;
      })(),
    };
  };
  const call = callOf({ model: TARGET.model, messages: [] });
  return {
    ...{ target: TARGET, offer: offer as Offer, model: undefined, price: undefined, call, send },
    request: deepFreeze(structuredClone(request)),
    codecCall: { model: TARGET.model, stream: false, created: 1_790_000_000, id: 'conformance' },
    abortSignal: new AbortController().signal,
    sendForJson: async (requested: HttpRequest) => {
      const text = String(await (await send(requested)).readAll());
      return JSON.parse(text) as unknown;
    },
    bill(reported: ReportedUsage | undefined, performed = request) {
      const facts = { target: TARGET, offer, model: undefined, price: undefined };
      const { providerCost: _, ...priced } = priceUsage(
        definition.maxUsage(performed as never, facts as never),
        reported,
        undefined,
      );
      metered.push(priced);
    },
    meter: (one: Metered) => void metered.push(one),
    isChecked: false,
    whileStreaming: (source: AsyncIterable<unknown>) => source,
  } as unknown as Attempt;
}

function assertMetered({ units, cost }: Metered): void {
  for (const [unit, amount] of Object.entries(units))
    assert.ok(Number.isSafeInteger(amount) && amount >= 0, `${unit} is a whole number: ${amount}`);
  assert.ok(cost === undefined || (Number.isSafeInteger(cost) && cost >= 0), `the cost is whole nano-dollars: ${cost}`);
}
