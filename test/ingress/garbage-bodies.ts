/** Garbage for the routes of dialects: bytes, JSON, and valid bodies with one defect. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { ERRORS, type ErrorCode, isObject } from '../../contract/index.ts';
import { anyText } from '../support/arbitrary-text.ts';
import { dialectFixtures } from '../support/formats/dialect-kits.ts';
import { type IngressRig, MODEL_OF } from '../support/gateways/ingress-rig.ts';

/** Client route and the format of its errors. */
export interface Door {
  readonly dialect: string;
  readonly path: (model: string) => string;
  /** Fixtures whose bodies are mutated. */
  readonly fixture: RegExp;
}

const at = (path: string) => () => path;
const gemini = (method: string) => (model: string) => `/v1beta/models/${model}:${method}`;

export const DOORS: readonly Door[] = Object.freeze([
  { dialect: 'chat', path: at('/v1/chat/completions'), fixture: /request-/ },
  { dialect: 'messages', path: at('/v1/messages'), fixture: /request-(?!count)/ },
  { dialect: 'messages', path: at('/v1/messages/count_tokens'), fixture: /request-/ },
  { dialect: 'responses', path: at('/v1/responses'), fixture: /request-(?!count)/ },
  { dialect: 'responses', path: at('/v1/responses/input_tokens'), fixture: /request-/ },
  { dialect: 'gemini', path: gemini('generateContent'), fixture: /request-(?!count)/ },
  { dialect: 'gemini', path: gemini('streamGenerateContent'), fixture: /request-(?!count)/ },
  { dialect: 'gemini', path: gemini('countTokens'), fixture: /request-/ },
  { dialect: 'completions', path: at('/v1/completions'), fixture: /request-/ },
  { dialect: 'ollama', path: at('/api/chat'), fixture: /request-chat/ },
  { dialect: 'ollama', path: at('/api/generate'), fixture: /request-generate/ },
]);

/** Error of a dialect, after its shape is checked. */
interface Reported {
  readonly message: string;
  /** Place of the error; null if the format has no field for it and the message names it. */
  readonly param: string | null;
  readonly code?: string;
}

/** Checks an error's body against the exact shape of its format. */
export function readError(dialect: string, status: number, body: unknown): Reported {
  if (dialect === 'ollama') {
    expect(body).to.have.all.keys('error', 'type', 'code', 'param', 'request_id');
    const { error: message, code, param } = body as { error: string; code: string; param: string | null };
    expect(message).to.be.a('string').and.not.equal('');
    return { message, param, code };
  }
  const { error } = body as { readonly error: Readonly<Record<string, unknown>> };
  expect(error['message']).to.be.a('string').and.not.equal('');
  const message = String(error['message']);
  if (dialect === 'messages') {
    expect(body).to.have.all.keys('type', 'error', 'request_id').and.include({ type: 'error' });
    expect(error).to.have.all.keys('type', 'message');
    expect(error['type']).to.match(/^[a-z_]+_error$|^request_too_large$/);
    return { message, param: null };
  }
  if (dialect === 'gemini') {
    expect(error).to.have.all.keys('code', 'message', 'status', 'details').and.include({ code: status });
    expect(error['status']).to.match(/^[A-Z_]+$/);
    const [{ reason, metadata }] = error['details'] as [{ reason: string; metadata: { param?: string } }];
    return { message, param: metadata.param ?? null, code: reason.toLowerCase() };
  }
  const code = error['code'] as ErrorCode;
  expect(error).to.have.all.keys('message', 'type', 'code', 'param', 'request_id');
  expect([ERRORS[code].status, ERRORS[code].type]).to.deep.equal([status, error['type']]);
  return { message, param: error['param'] as string | null, code };
}

/** Bodies of a dialect's fixtures. */
function bodiesOf({ dialect, fixture }: Door): readonly object[] {
  const folder = dialectFixtures(dialect);
  return readdirSync(folder)
    .filter((name) => fixture.test(name))
    .map((name) => (JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as { readonly body: object }).body);
}

type Path = readonly string[];

function pathsOf(value: unknown): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [[name], ...pathsOf(inner).map((rest) => [name, ...rest])]);
}

const LONG = 65_000;
const text = fc.oneof(
  { weight: 4, arbitrary: anyText({ maxLength: 40 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('__proto__', 'constructor', 'data:;base64,', 'https://127.0.0.1/x', '\r\nx: y', ''),
  },
  {
    weight: 1,
    arbitrary: anyText({ minLength: 1, maxLength: 8 }).map((one) => one.repeat(LONG / 16)),
  },
);
const value: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.constantFrom<unknown>(null, true, false, 0, -1, 0.5, 1e300, [], {}, [null], [[]], { type: null }, { type: 'x' }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.array(fc.dictionary(text, text, { maxKeys: 2 }), { maxLength: 4 }),
  fc.integer({ min: 100, max: 6000 }).map((count) => Array.from({ length: count }, () => ({}))),
);

/** Body with some values replaced, or fields added. */
function mutated(door: Door): fc.Arbitrary<object> {
  const bodies = bodiesOf(door);
  const step = fc.tuple(fc.nat(), fc.boolean(), fc.string({ maxLength: 8 }), value);
  return fc
    .tuple(fc.constantFrom(...bodies), fc.array(step, { minLength: 1, maxLength: 3 }))
    .map(([body, steps]) =>
      steps.reduce((changed, [lot, adds, name, wrong]) => change(changed, { lot, adds, name, wrong }), body),
    );
}

function change(
  body: object,
  { lot, adds, name, wrong }: { lot: number; adds: boolean; name: string; wrong: unknown },
): object {
  const copy = structuredClone(body);
  const paths = pathsOf(copy);
  const path = paths[lot % Math.max(paths.length, 1)] ?? ['x'];
  let owner = copy as Record<string, unknown>;
  for (const one of path.slice(0, -1)) owner = owner[one] as Record<string, unknown>;
  const last = adds && !Array.isArray(owner) ? name : (path.at(-1) ?? '');
  if (last !== '__proto__') owner[last] = wrong;
  return copy;
}

interface Garbage {
  readonly kind: 'bytes' | 'JSON' | 'body';
  readonly body: string | Uint8Array;
}

function garbage(door: Door, model: string): fc.Arbitrary<Garbage> {
  const withModel = (body: object): object =>
    'model' in body && body['model'] === 'some-model' ? { ...body, model } : body;
  return fc.oneof(
    {
      weight: 1,
      arbitrary: fc.uint8Array({ maxLength: LONG, size: 'max' }).map((body) => ({ kind: 'bytes' as const, body })),
    },
    { weight: 2, arbitrary: value.map((body) => ({ kind: 'JSON' as const, body: JSON.stringify(body) })) },
    {
      weight: 7,
      arbitrary: mutated(door).map((body) => ({ kind: 'body' as const, body: JSON.stringify(withModel(body)) })),
    },
  );
}

const MODELS = ['echo/echo', ...Object.values(MODEL_OF)];

/** Result of a run: the number of successful requests, and of refusals that name the place. */
export interface Tally {
  served: number;
  refused: number;
  placed: number;
}

/**
 * Posts garbage to a route. It succeeds, or is refused with a 4xx in the format's shape that names the place of the
 * error.
 */
export async function postGarbage(
  rig: IngressRig,
  door: Door,
  params: fc.Parameters<[Garbage, string]>,
): Promise<Tally> {
  const tally: Tally = { served: 0, refused: 0, placed: 0 };
  const input = fc.constantFrom(...MODELS).chain((model) => fc.tuple(garbage(door, model), fc.constant(model)));
  await fc.assert(
    fc.asyncProperty(input, async ([{ kind, body }, model]) => {
      const response = await rig.gateway.post(door.path(model), body);
      const said = await response.text();
      const what = `${door.path(model)} ${Buffer.from(body).toString('latin1').slice(0, 600)} -> ${said.slice(0, 600)}`;
      if (response.status === 200) {
        expect(said, what).not.to.match(/"internal_error"|INTERNAL/);
        tally.served += 1;
        return;
      }
      expect(response.status, what).to.be.within(400, 499);
      const { message, param, code } = readError(door.dialect, response.status, JSON.parse(said));
      tally.refused += 1;
      if (response.status !== 400) return;
      // A vendor's own rule comes in the vendor's own words, after its name.
      const isOfVendor = /^[a-z]+: /.test(message);
      const isPlaced =
        isOfVendor || param !== null || /`[^`]+`|\b\w+(?:\[\d+\]|\.\w+)+|"[^"]+"|\b\w+ must\b/.test(message);
      if (isPlaced) tally.placed += 1;
      // A body that is not an object has no place.
      const isObjectBody = kind === 'body' && isObject(JSON.parse(String(body)));
      if (isObjectBody && code !== 'invalid_json') expect(isPlaced, what).to.equal(true);
    }),
    params as never,
  );
  return tally;
}
