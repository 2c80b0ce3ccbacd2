import path from 'node:path';
import { expect } from 'chai';
import { readHouse } from '../../bench/house.mjs';
import { LAYERS, VENDOR_EXCEPTIONS, VENDORS } from './layers.ts';
import { readSources, type SourceFile } from './source-tree.ts';

/** Remaining casts through unknown; lower the number when one is removed. */
const MAX_CASTS = 4;
const contract = readSources('contract');
const core = readSources('core');
/** Generators of the build, which are not shipped and may read from every folder. */
const BUILD = /^cli\/generate\//;
const configuration = readSources('config');
const program = readSources('cli').filter(({ name }) => !BUILD.test(name));
const openApi = readSources('openapi');
const routing = readSources('routing');
const egress = readSources('egress');
const models = readSources('models');
const plugins = readSources('plugins');
const product = [
  ...contract,
  ...core,
  ...configuration,
  ...program,
  ...openApi,
  ...routing,
  ...egress,
  ...models,
  ...plugins,
];
const everything = [...product, ...readSources('test', 'bench')];

/** Returns `calls/` for `core/calls/chat.ts`, `app` for `core/app.ts`. */
function moduleOf(file: string): string {
  const [, first = '', rest] = file.split('/');
  return rest === undefined ? first.replace(/\.ts$/, '') : `${first}/`;
}

function rowOf(file: string): number {
  return LAYERS.findIndex(({ modules }) => modules.includes(moduleOf(file)));
}

/** Names of the matching files, so that a failure lists them all. */
function namesOf(files: readonly SourceFile[], isBad: (file: SourceFile) => unknown): readonly string[] {
  return files.filter(isBad).map(({ name }) => name);
}

/** Floors of the tree, lowest last. A file imports only from the listed floors; types and `import()` count. */
const FLOORS: Readonly<Record<string, readonly string[]>> = Object.freeze({
  cli: ['core', 'egress', 'models', 'routing', 'openapi', 'config', 'contract'],
  core: ['egress', 'models', 'routing', 'openapi', 'config', 'contract'],
  egress: ['config', 'contract'],
  models: ['config', 'contract'],
  routing: ['config', 'contract'],
  openapi: ['config', 'contract'],
  config: ['contract'],
  contract: [],
});

const floorOf = (file: string): string => file.split('/')[0] ?? '';

/** Returns `plugins/formats` for `plugins/formats/google/read-stream.ts`, otherwise the floor. */
const folderOf = (file: string): string =>
  file.startsWith('plugins/') ? file.split('/').slice(0, 2).join('/') : floorOf(file);

describe('the rows of core', () => {
  it('include every file', () => {
    expect(namesOf(core, ({ name }) => rowOf(name) < 0)).to.deep.equal([]);
  });

  it('name only existing modules, each once', () => {
    const named = LAYERS.flatMap(({ modules }) => modules);
    expect([...new Set(named)].filter((name) => !core.some((file) => moduleOf(file.name) === name))).to.deep.equal([]);
    expect(named).to.have.length(new Set(named).size);
  });

  it('are imported only downwards', () => {
    const upwards = core.flatMap(({ name, imports }) =>
      imports
        .filter(({ file }) => file?.startsWith('core/') && rowOf(file) > rowOf(name))
        .map(({ file }) => `${name} imports ${file}`),
    );
    expect(upwards).to.deep.equal([]);
  });
});

describe('the floors', () => {
  it('are imported only downwards', () => {
    const upwards = product.flatMap(({ name, imports }) => {
      const below = FLOORS[floorOf(name)];
      return imports.flatMap(({ file }) =>
        !file || !below || floorOf(file) === floorOf(name) || below.includes(floorOf(file))
          ? []
          : [`${name} imports ${file}`],
      );
    });
    expect(upwards).to.deep.equal([]);
  });

  it('of plugins import only the contract, never core, the configuration, egress or the program', () => {
    const foreign = plugins.flatMap(({ name, imports }) =>
      imports.flatMap(({ file }) => (!file || /^(contract|plugins)\//.test(file) ? [] : [`${name} imports ${file}`])),
    );
    expect(foreign).to.deep.equal([]);
  });

  it('have no import cycles between folders', () => {
    const arrows = new Map<string, Set<string>>();
    for (const { name, imports } of product)
      for (const { file } of imports)
        if (file && folderOf(file) !== folderOf(name))
          arrows.set(folderOf(name), (arrows.get(folderOf(name)) ?? new Set()).add(folderOf(file)));
    const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
      [...(arrows.get(from) ?? [])].some((next) => {
        if (next === to) return true;
        if (seen.has(next)) return false;
        seen.add(next);
        return reaches(next, to, seen);
      });
    expect([...arrows.keys()].filter((folder) => reaches(folder, folder))).to.deep.equal([]);
  });
});

describe('an import', () => {
  /** Maximum length of a chain of files, each of which statically imports the next. */
  const MAX_CHAIN = 20;
  /** Maximum number of files loaded with one entry or one provider: three more than measured. */
  const MAX_FILES = { 'contract/index.ts': 26, 'plugins/providers/groq.ts': 78 };
  const loads = new Map(product.map(({ name, code }) => [name, loadedAtOnce(name, code)]));

  it('has a chain of few files', () => {
    const chains = new Map<string, readonly string[]>();
    const chainOf = (file: string): readonly string[] => {
      const known = chains.get(file);
      if (known) return known;
      const below = (loads.get(file) ?? []).map(chainOf).toSorted((one, other) => other.length - one.length);
      const chain = [file, ...(below[0] ?? [])];
      chains.set(file, chain);
      return chain;
    };
    expect(product.map(({ name }) => chainOf(name)).filter(({ length }) => length > MAX_CHAIN)).to.deep.equal([]);
    expect(chainOf('cli/start.ts').length, 'the chain of a start').to.be.above(10);
  });

  for (const [entry, most] of Object.entries(MAX_FILES))
    it(`of ${entry} loads ${most} files at most`, () => {
      const found = new Set([entry]);
      for (const file of found) for (const next of loads.get(file) ?? []) found.add(next);
      expect([...found].sort()).to.have.length.within(20, most);
    });

  /** Returns the files that a file imports statically, without types and `import()`. */
  function loadedAtOnce(name: string, code: string): readonly string[] {
    const found = code.matchAll(/^(?:import|export)\s(?!type\b)(?:[^'"();=]*\sfrom\s)?'(\.[^']+)'/gm);
    return [...found].map(([, specifier = '']) => path.posix.join(path.posix.dirname(name), specifier));
  }
});

describe('the contract', () => {
  it('needs no library at run time except the parser of event streams, which its entry does not load', () => {
    const libraries = contract.flatMap(({ name, code }) =>
      [...code.matchAll(/^import (?!type )[^;]*? from '([^'.][^']*)'/gm)].flatMap(([, from = '']) =>
        from.startsWith('node:') ? [] : [`${name} imports ${from}`],
      ),
    );
    expect(libraries).to.deep.equal(['contract/event-reader.ts imports eventsource-parser']);
    expect(
      namesOf(contract, ({ imports }) => imports.some(({ file }) => file === 'contract/event-reader.ts')),
    ).to.deep.equal([]);
  });
});

describe('core', () => {
  it('names no vendor', () => {
    const pattern = new RegExp(`\\b(${VENDORS.join('|')})\\b`, 'i');
    const named = [...contract, ...core, ...configuration, ...models, ...routing, ...egress]
      .filter(({ name }) => !(name in VENDOR_EXCEPTIONS))
      .flatMap(({ name, code }) => {
        const found = pattern.exec(code.replaceAll(/provider\/\w+|OpenAI/g, ''));
        return found ? [`${name}: ${found[0]}`] : [];
      });
    expect(named).to.deep.equal([]);
  });

  it('reads the environment in the configuration and the defaults of an embedding program only', () => {
    const allowed = /^config\/|^core\/app\.ts$/;
    expect(
      namesOf(
        [...contract, ...core, ...configuration],
        ({ name, code }) => !allowed.test(name) && /\bprocess\.env\b/.test(code),
      ),
    ).to.deep.equal([]);
  });
});

describe('a plugin', () => {
  /** Returns `plugins/<kind>/<plugin>`, the folder that `plugins/<kind>/<plugin>.ts` may also import. */
  const homeOf = (file: string): string =>
    /^plugins\/(?:console|mcp)\//.test(file)
      ? file.split('/').slice(0, 2).join('/')
      : file.split('/').slice(0, 3).join('/').replace(/\.ts$/, '');

  const SHARED = [
    /^plugins\/providers\/openai-compatible\.ts$/,
    /^plugins\/\w+\/kit\//,
    // Atomic operations for one process, which Keyv lacks.
    /^plugins\/stores\/memory\/atomic\.ts$/,
  ];

  /** Modules of the contract for plugins: its entry, and the reader of event streams, which only some need. */
  const ENTRIES = ['contract/index.ts', 'contract/event-reader.ts'];

  /**
   * Modules for plugins of any kind: `tollgate/codec`, `tollgate/speech`, `tollgate/operators`, and the builder of
   * operators' routes and commands.
   */
  const OPEN_KITS = [
    'plugins/formats/kit/index.ts',
    'plugins/providers/kit/index.ts',
    'plugins/tts/kit/index.ts',
    'plugins/policies/kit/index.ts',
    'plugins/policies/kit/resource.ts',
    'plugins/policies/kit/printable.ts',
    // Sessions of people, in the store.
    'plugins/auth/kit/documents.ts',
    'plugins/auth/kit/random-id.ts',
    'plugins/auth/kit/secrets.ts',
    'plugins/auth/kit/sign-in-rate.ts',
    'plugins/auth/kit/omit-undefined.ts',
  ];

  /** Kinds that may import `plugins/formats/`; formats themselves import no plugin. */
  const FORMAT_READERS: ReadonlySet<string> = new Set(['dialects', 'providers', 'formats']);

  it('takes its options from the configuration, never from the environment; a program it runs gets a part of the environment', () => {
    const runsProgram = 'plugins/tts/espeak/index.ts';
    expect(namesOf(plugins, ({ name, code }) => name !== runsProgram && /\bprocess\.env\b/.test(code))).to.deep.equal(
      [],
    );
  });

  it('imports the contract and its own folder; shared code is in kit, openai-compatible and formats', () => {
    const foreign = plugins.flatMap(({ name, imports }) =>
      imports.flatMap(({ file }) => {
        if (
          !file ||
          ENTRIES.includes(file) ||
          (file === 'contract/operators.ts' && name.startsWith('plugins/policies/kit/')) ||
          (file === 'contract/texts.ts' && name.startsWith('plugins/guardrails/kit/'))
        )
          return [];
        if (homeOf(file) === homeOf(name)) return [];
        // Limits and money are one plugin with two names in the configuration, each with its own `when`, `mode` and `hooks`.
        if (name === 'plugins/policies/limits/index.ts' && file.startsWith('plugins/policies/accounts/holds/'))
          return [];
        const kind = name.split('/')[1] ?? '';
        if (kind === 'formats' && !file.startsWith('plugins/formats/')) return [`${name} imports ${file}`];
        if (OPEN_KITS.includes(file)) return [];
        if (file.startsWith('plugins/formats/') && FORMAT_READERS.has(kind)) return [];
        const isShared = file.startsWith(`plugins/${kind}/`) && SHARED.some((pattern) => pattern.test(file));
        return isShared ? [] : [`${name} imports ${file}`];
      }),
    );
    expect(foreign).to.deep.equal([]);
  });
});

describe('every source file', () => {
  it('is in no import cycle, types included', () => {
    expect(readHouse().lists.importCircles).to.deep.equal([]);
  });

  it('has no additional casts', () => {
    expect(readHouse().tree.casts).to.be.at.most(MAX_CASTS);
  });

  it('is named in kebab-case, by its purpose', () => {
    const vague = /(^|\/)(utils?|helpers?|common|misc|managers?)(\/|\.|-|$)/;
    expect(namesOf(everything, ({ name }) => vague.test(name))).to.deep.equal([]);
    expect(namesOf(everything, ({ name }) => !/^[a-z0-9/.-]+$/.test(name))).to.deep.equal([]);
  });

  it('of the product prints nothing with console', () => {
    expect(namesOf(product, ({ code }) => /\bconsole\.(?!groq)/.test(code))).to.deep.equal([]);
  });

  it('of the product has no any, no enum and no TODO', () => {
    // Biome rejects the type; this finds suppressed cases.
    expect(namesOf(product, ({ text }) => /\bas any\b|<any>|\bany\[\]|noExplicitAny/.test(text))).to.deep.equal([]);
    expect(namesOf(product, ({ code }) => /^\s*(export\s+)?(const\s+)?enum\s/m.test(code))).to.deep.equal([]);
    expect(namesOf(product, ({ text }) => /\b(TODO|FIXME|XXX|not implemented)\b/.test(text))).to.deep.equal([]);
  });
});
