/** Complete gateway in front of scripted vendors with five wire formats, for tests of client formats. */
import { templateError } from '../vendors/chat-templates.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  type RecordedRequest,
  respondWith,
  type Script,
  SSE_HEAD,
  startScriptedUpstream,
} from '../vendors/scripted-upstream.ts';
import { type ScriptedOutput, streamText, WIRES, type Wire, wholeBody } from '../vendors/vendor-wires.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';

export { type Piece, type ScriptedOutput, WIRES, type Wire } from '../vendors/vendor-wires.ts';

/** Model of each vendor, as a caller names it. */
export const MODEL_OF: Readonly<Record<Wire, string>> = Object.freeze({
  openai: 'openai/gpt-5',
  anthropic: 'anthropic/claude-sonnet-4-5',
  gemini: 'gemini/gemini-3.8-flash',
  mistral: 'mistral/magistral-medium-latest',
  deepseek: 'deepseek/deepseek-chat',
});

/** Bytes per chunk of a vendor, which splits names, characters and events. `rig.test.ts` tests other sizes. */
export const CUT = 7;

const BASE: Readonly<Record<Wire, string>> = Object.freeze({
  openai: '/v1',
  anthropic: '',
  gemini: '/v1beta',
  mistral: '/v1',
  deepseek: '',
});

export interface IngressRig {
  readonly gateway: TestGateway;
  /** Requests that a vendor received, in order. */
  sent(wire: Wire): readonly RecordedRequest[];
  /** Body of a vendor's last request. */
  lastBody<T = Record<string, unknown>>(wire: Wire): T;
  /**
   * Sets the vendor's next responses, as JSON or a stream depending on the request; the last one repeats. `cut` is in
   * bytes.
   */
  say(wire: Wire, said: ScriptedOutput | readonly ScriptedOutput[], cut?: number): void;
  /** Sets the vendor's next responses, as bytes or scripts; the last one repeats. */
  script(wire: Wire, ...scripts: readonly (Script | Uint8Array)[]): void;
  stop(): Promise<void>;
}

/** Starts the gateway; `config` overrides the default vendors, the echo provider and API keys. */
export async function startIngressRig(
  config: Record<string, unknown> = {},
  options: TestGatewayOptions = {},
): Promise<IngressRig> {
  const scripts = new Map<string, readonly (Script | Uint8Array)[]>();
  const vendors = await startScriptedUpstream(async (wire) => {
    const name = wireOf(wire.request);
    const refused = templateRefusal(name, wire.request);
    if (refused) return wire.send(respondWith(400, refused));
    const [script, ...later] = scripts.get(name) ?? [];
    if (later.length > 0) scripts.set(name, later);
    if (typeof script === 'function') await script(wire);
    else await wire.send(script ?? respondWith(500, { error: { message: 'The test has no script for this vendor.' } }));
  });
  const { providers, ...rest } = config;
  const gateway = await startGateway(
    {
      ...rest,
      providers: {
        echo: {},
        ...Object.fromEntries(
          WIRES.map((wire) => [
            wire,
            { apiKey: `key-of-${wire}`, baseUrl: `${vendors.url}/${wire}${BASE[wire]}`, models: ['*'] },
          ]),
        ),
        ...(providers as object | undefined),
      },
    },
    options,
  ).catch(async (error: unknown) => {
    await vendors.close();
    throw error;
  });
  const sent = (wire: Wire) => vendors.requests.filter((request) => wireOf(request) === wire);
  const script: IngressRig['script'] = (wire, ...next) => void scripts.set(wire, next);
  return {
    gateway,
    sent,
    lastBody: <T>(wire: Wire) => sent(wire).at(-1)?.json() as T,
    say: (wire, said, cut) => script(wire, ...[said].flat().map((one) => sayScript(wire, one, cut))),
    script,
    async stop() {
      await gateway.stop();
      await vendors.close();
    },
  };
}

/**
 * Rejection by vendors with OpenAI's format, independent of scripts: empty lists, and at Mistral another order of
 * turns.
 */
function templateRefusal(name: string, { path, body, json }: RecordedRequest): object | undefined {
  if (!path.endsWith('/chat/completions') || body.length === 0) return undefined;
  return templateError(name === 'mistral' ? 'mistral' : undefined, json() as Readonly<Record<string, unknown>>);
}

function wireOf({ path }: RecordedRequest): string {
  return path.split('/')[1] ?? '';
}

/** Responds with JSON or a stream, as requested, in pieces of `cut` bytes. */
export function sayScript(name: Wire, said: ScriptedOutput, cut = 65_536): Script {
  return async (wire) => {
    if (!wantsStream(wire.request)) {
      const body = Buffer.from(JSON.stringify(wholeBody(name, said)));
      await wire.send(head(200, { 'content-type': 'application/json', 'content-length': String(body.length) }));
      for (const piece of cutBytes(body, cut)) await wire.send(piece);
      return;
    }
    await wire.send(SSE_HEAD);
    for (const piece of cutBytes(Buffer.from(streamText(name, said)), cut)) await wire.send(chunk(piece));
    await wire.send(LAST_CHUNK);
  };
}

/** Stream of a vendor that is interrupted after its first `events` events, or continues with `then`. */
export function cutScript(name: Wire, said: ScriptedOutput, events: number, then = ''): Script {
  return async (wire) => {
    const first = streamText(name, said).split('\n\n').slice(0, events).join('\n\n');
    await wire.send(SSE_HEAD);
    await wire.send(chunk(`${first}\n\n${then}`));
    await wire.send(LAST_CHUNK);
  };
}

function wantsStream({ path, body }: RecordedRequest): boolean {
  if (path.includes('streamGenerateContent')) return true;
  return (JSON.parse(body.toString()) as { readonly stream?: unknown }).stream === true;
}

function cutBytes(bytes: Buffer, size: number): readonly Buffer[] {
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
}
