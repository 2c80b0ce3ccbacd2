// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import path from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { trySetUp } from '../../cli/check-config.ts';
import { describeError } from '../../cli/io.ts';
import { loadConfig } from '../../config/load-config.ts';
import { createGateway } from '../../core/app.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { createSilentLog } from '../support/log.ts';

/** `TOLLGATE_PROPERTY_CASES=3000 TOLLGATE_PROPERTY_SEED=1 npx mocha test/cli/check.property.slow.test.ts` */
const CASES = Number(process.env['TOLLGATE_PROPERTY_CASES'] ?? 100);
const SEED = Number(process.env['TOLLGATE_PROPERTY_SEED'] ?? 20261122);

/** Valid configuration with many features. */
const WHOLE = {
  server: { host: '127.0.0.1', port: 0, cors: { origins: ['https://chat.example'] }, keepAlive: '5s', workers: 1 },
  store: 'memory:',
  billing: 'track',
  logging: { level: 'silent' },
  providers: {
    echo: {},
    openai: { apiKey: 'k', headers: { 'x-a': 'b' }, models: ['gpt-5'], timeouts: { total: '30s' } },
    azure: { apiKey: 'k', resource: 'acme', deployments: { prod: 'gpt-5' } },
    local: { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1', models: ['*'] },
  },
  models: {
    fast: 'echo/echo',
    smart: ['openai/gpt-5', 'azure/prod'],
    spread: { targets: ['echo/echo', 'local/a'], strategy: 'weighted' },
  },
  plans: { free: { rpm: 5, providers: { openai: { rpm: 1 } } }, pro: { tpm: 100 } },
  defaultPlan: 'free',
  auth: {
    'api-key': { pepper: 'x7Qe0vTn4LrPz2Ws9KdYb6HcUf1MgJa8', maxKeysPerUser: 5 },
    jwt: {
      issuer: 'https://idp.example',
      audience: 'gate',
      secret: 'mR4tY8uI1oP6aS3dF9gH2jK5lZ7xC0vB',
      claims: { plan: 'plan' },
    },
  },
  agents: {
    team: {
      model: 'fast',
      agents: { law: { when: 'law', instructions: 'be brief', tools: ['rag'] } },
      limits: { timeout: '60s' },
    },
    medical: { model: 'smart', country: 'DE' },
    rag: { folder: './knowledge', access: { hr: { plans: ['pro'] } } },
  },
  policies: { accounts: { onStoreFailure: 'closed' }, limits: {}, overload: { maxLag: '500ms' } },
  dialects: { responses: { store: 'short' }, messages: { models: { 'claude-x': 'echo/echo' } } },
  responseCache: { ttl: '1h' },
  tts: { elevenlabs: { apiKey: 'k' } },
};

type Tree = Record<string, unknown> | unknown[];

/** All paths in a tree. */
function placesOf(tree: unknown, at: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof tree !== 'object' || tree === null) return [at];
  return [at, ...Object.entries(tree).flatMap(([key, child]) => placesOf(child, [...at, key]))];
}

const PLACES = placesOf(WHOLE).filter((place) => place.length > 0);
const VALUES = [
  ...[
    null,
    true,
    false,
    0,
    1,
    -1,
    1.5,
    2 ** 40,
    '',
    ' ',
    'x',
    '*',
    'none',
    '5s',
    '0s',
    '-5s',
    '999d',
    '1mb',
    '${',
    '${NOPE}',
  ],
  ...[
    'echo/echo',
    'nope/x',
    'fast',
    'free',
    'nope',
    'https://a.example',
    'http://a.example/x',
    'ftp://a',
    './knowledge',
    '/nonexistent',
  ],
  ...[[], {}, ['x'], ['*'], [1], { x: 1 }, ['echo/echo'], { targets: ['nope/a'] }, 'a\r\nb', 'é'.repeat(300)],
];

type Change =
  | { readonly do: 'drop'; readonly at: readonly string[] }
  | { readonly do: 'set'; readonly at: readonly string[]; readonly value: unknown }
  | { readonly do: 'rename'; readonly at: readonly string[]; readonly name: string }
  | { readonly do: 'copy'; readonly at: readonly string[]; readonly from: readonly string[] };

const place = fc.constantFrom(...PLACES);
const CHANGES = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('drop' as const), at: place }),
    fc.record({ do: fc.constant('set' as const), at: place, value: fc.constantFrom<unknown>(...VALUES) }),
    fc.record({
      do: fc.constant('rename' as const),
      at: place,
      name: fc.constantFrom('x', 'echo', 'rag', 'A B', 'team', 'free'),
    }),
    fc.record({ do: fc.constant('copy' as const), at: place, from: place }),
  ),
  { minLength: 1, maxLength: 3 },
);

function valueAt(tree: unknown, at: readonly string[]): unknown {
  return at.reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], tree);
}

function change(tree: Tree, step: Change): void {
  const parent = valueAt(tree, step.at.slice(0, -1)) as Record<string, unknown> | undefined;
  const key = step.at.at(-1) ?? '';
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, key)) return;
  if (step.do === 'set') parent[key] = structuredClone(step.value);
  else if (step.do === 'copy') parent[key] = structuredClone(valueAt(tree, step.from));
  else {
    const value = parent[key];
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
    if (step.do === 'rename' && !Array.isArray(parent)) parent[step.name] = value;
  }
}

/**
 * Errors that depend on the machine at the start. Examples are a name that does not resolve, an address of another
 * machine, and an unreachable store.
 */
const OF_THE_MACHINE = /cannot listen|store/;

describe('any configuration', () => {
  const folder = () => makeFolder({ 'knowledge/hr/a.md': '# a' });
  after(removeFolders);

  it('gives the same result in a check and a start', async function () {
    this.timeout(0);
    const log = createSilentLog();
    const base = folder();
    const counts = { fine: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(CHANGES, async (steps) => {
        const tree = structuredClone(WHOLE) as Tree;
        for (const step of steps) change(tree, step);
        const file = path.join(base, 'tollgate.config.json');
        const { writeFileSync } = await import('node:fs');
        writeFileSync(file, JSON.stringify(tree));
        const input = { cwd: base, env: { HOME: base }, configPath: file };
        const said = (error: unknown): string => describeError(error).join('\n');
        const checked = await loadConfig(input)
          .then((loaded) => trySetUp(loaded, log))
          .then(() => undefined, said);
        const started = await createGateway({ ...input, log, port: 0 }).then(
          (gateway) => gateway.close().then(() => undefined),
          said,
        );
        counts[checked === undefined ? 'fine' : 'refused']++;
        if (checked?.startsWith('server.workers')) return;
        if (checked === undefined && started !== undefined && OF_THE_MACHINE.test(started)) return;
        expect(started).to.equal(checked);
      }),
      { numRuns: CASES, seed: SEED },
    );
    // Both results must occur, otherwise the property proves nothing.
    expect(counts.fine).to.be.greaterThan(CASES / 20);
    expect(counts.refused).to.be.greaterThan(CASES / 20);
  });
});
