import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { corpusJson } from '../support/corpus.ts';

/** Known bug of another gateway. */
interface Case {
  readonly id: string;
  readonly surface: string;
  readonly input: string;
}

/** Implementation by the first word of a case's surface. A case without an implementation needs no test. */
const SURFACES: Readonly<Record<string, string>> = Object.freeze({
  msg: 'plugins/dialects/messages.ts',
  count_tokens: 'plugins/dialects/messages.ts',
  models: 'plugins/dialects/messages.ts',
  resp: 'plugins/dialects/responses/index.ts',
  gem: 'plugins/dialects/gemini.ts',
  chat: 'plugins/dialects/chat.ts',
  emb: 'plugins/dialects/chat.ts',
});

/** Cases that no test can name, each with the reason. */
const NOT_APPLICABLE: Readonly<Record<string, string>> = Object.freeze({});

const LAST = 66;
const cases = (corpusJson('gateway-cases/rivals-bugs.json') as readonly Case[]).filter(
  ({ id }) => Number(id.slice(1)) <= LAST,
);

/** Titles begin with the numbers of their cases: `G07:`, `G21, G22:`, `G01-G06, G09:`. */
const TITLE = /['"`](G\d\d(?:[-,]? ?G?\d\d)*)\b/g;

function numbersOf(list: string): readonly string[] {
  return [...list.matchAll(/G(\d\d)(?:-G(\d\d))?/g)].flatMap(([, first, last = first]) =>
    Array.from(
      { length: Number(last) - Number(first) + 1 },
      (_, at) => `G${String(Number(first) + at).padStart(2, '0')}`,
    ),
  );
}

/** Cases named in titles of tests and exchanges, each with its files. */
function namedCases(): ReadonlyMap<string, readonly string[]> {
  const folder = path.join(PACKAGE_ROOT, 'test');
  const named = new Map<string, readonly string[]>();
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.test\.ts$|^exchanges\/.*\.json$/.test(name),
  );
  for (const file of files)
    for (const [, list = ''] of readFileSync(path.join(folder, file), 'utf8').matchAll(TITLE))
      for (const id of numbersOf(list)) named.set(id, [...(named.get(id) ?? []), file]);
  return named;
}

describe('known bugs of other gateways', () => {
  it('are 66 in client formats, each on a known surface', () => {
    expect(cases.map(({ id }) => id)).to.deep.equal(numbersOf('G01-G66'));
    const unknown = cases.filter(({ surface }) => !(surfaceOf(surface) in SURFACES));
    expect(unknown).to.deep.equal([]);
  });

  it('each have a test whose title begins with the number, if the surface exists', () => {
    const named = namedCases();
    const missing = cases
      .filter(
        ({ id, surface }) => existsSync(path.join(PACKAGE_ROOT, SURFACES[surfaceOf(surface)] ?? '')) && !named.has(id),
      )
      .filter(({ id }) => !(id in NOT_APPLICABLE));
    expect(missing.map(({ id, input }) => `${id}: ${input}`)).to.deep.equal([]);
  });

  it('have no test if they do not apply', () => {
    const named = namedCases();
    expect(Object.keys(NOT_APPLICABLE).filter((id) => named.has(id))).to.deep.equal([]);
  });
});

function surfaceOf(surface: string): string {
  return surface.split(' ')[0] ?? '';
}
