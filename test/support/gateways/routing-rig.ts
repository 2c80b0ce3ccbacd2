/** Gateway in front of several scripted vendors, for tests of target selection. */
import { completion, delta, events, openAiVendor, tokenPrices } from '../vendors/openai-vendor.ts';
import {
  respondWith,
  type Script,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../vendors/scripted-upstream.ts';
import { startGateway, type TestGateway } from './gateway.ts';

export interface RoutingRig {
  readonly gateway: TestGateway;
  /** Vendors by provider name: `a`, `b` and so on. */
  readonly vendors: Readonly<Record<string, ScriptedUpstream>>;
  /** Number of requests to a vendor so far. */
  countOf(name: string): number;
  /** Sends a chat; returns the status, the responding vendor, the number of attempts, and further headers. */
  send(model: string, request?: object, headers?: Record<string, string>): Promise<RigReply>;
  stop(): Promise<void>;
}

export interface RigReply {
  readonly status: number;
  readonly by: string | null;
  readonly attempts: string | null;
  readonly shouldRetry: string | null;
  readonly text: string;
  readonly ms: number;
}

export const fine = respondWith(200, completion());
export const fineStream: Script = events([delta('hi', 'stop', { usage: completion().usage }), '[DONE]']);
export const refusal = (status: number, headers: Record<string, string> = {}) =>
  respondWith(status, { error: { message: 'no', type: 'error' } }, headers);
/** Accepts a request and never responds. */
export const hung: Script = (wire) => wire.hang();

/** Vendors `a` to `d` respond normally by default; every model has the same price at all of them. */
export async function startRoutingRig(
  models: Readonly<Record<string, unknown>>,
  providers: Readonly<Record<string, object>> = {},
  config: Readonly<Record<string, unknown>> = {},
): Promise<RoutingRig> {
  const names = ['a', 'b', 'c', 'd'];
  const started = await Promise.all(names.map(() => startScriptedUpstream(fine)));
  const vendors = Object.fromEntries(names.map((name, at) => [name, started[at] as ScriptedUpstream]));
  const provider = (vendor: ScriptedUpstream, name: string) =>
    openAiVendor(vendor, { prices: tokenPrices(1, 2), ...providers[name] });
  const close = () => Promise.all(started.map((vendor) => vendor.close()));
  const gateway = await startGateway({
    providers: Object.fromEntries(Object.entries(vendors).map(([name, vendor]) => [name, provider(vendor, name)])),
    models,
    ...config,
  }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    gateway,
    vendors,
    countOf: (name) => vendors[name]?.requests.length ?? 0,
    async send(model, request = {}, headers = {}) {
      const begun = performance.now();
      const body = { model, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }], ...request };
      const response = await gateway.post('/v1/chat/completions', body, headers);
      const text = await response.text();
      return {
        ...{ status: response.status, text, ms: performance.now() - begun },
        by: response.headers.get('x-tollgate-provider'),
        attempts: response.headers.get('x-tollgate-attempts'),
        shouldRetry: response.headers.get('x-should-retry'),
      };
    },
    async stop() {
      await gateway.stop();
      await close();
    },
  };
}
