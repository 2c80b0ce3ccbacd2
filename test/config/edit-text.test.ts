import { expect } from 'chai';
import fc from 'fast-check';
import { EditError, editText, valuesOf } from '../../config/edit-text.ts';
import type { Json } from '../../contract/json.ts';

const FILE = `# Gateway of the team
server: { port: 8080 } # behind nginx

providers:
  openai:
    apiKey: \${OPENAI_API_KEY} # from the vault
    models: [gpt-5, 'gpt-5-mini']

models:
  # for chats
  fast: openai/gpt-5-mini   # cheap
  smart:
    targets:
      - openai/gpt-5 # first
      - to: openai/gpt-5-mini
        order: 2

plans:
  free: # everyone
    rpm: 10 # a minute
    tpm: \${TPM}

# the end
`;

type Values = Readonly<Record<string, Json>>;
type Change = (values: Record<string, Record<string, unknown>>) => void;

const edit = (change: Change, text = FILE): string => {
  const values = structuredClone(valuesOf(text, 'yaml')) as Record<string, Record<string, unknown>>;
  change(values);
  return editText(text, 'yaml', values as unknown as Values);
};

/** Lines that differ, with their signs. */
const diff = (before: string, after: string): readonly string[] => {
  const [old, next] = [before.split('\n'), after.split('\n')];
  return [
    ...old.filter((line) => !next.includes(line)).map((line) => `-${line}`),
    ...next.filter((line) => !old.includes(line)).map((line) => `+${line}`),
  ];
};

describe('a changed configuration text', () => {
  it('has one more line for a new alias, and all else byte for byte', () => {
    const after = edit(({ models }) => Object.assign(models ?? {}, { cheap: 'openai/gpt-5-mini' }));
    expect(after).to.equal(FILE.replace('        order: 2\n', '        order: 2\n  cheap: openai/gpt-5-mini\n'));
  });

  it('keeps the comment of a changed value', () => {
    const after = edit(({ plans, models }) => {
      Object.assign(plans?.['free'] ?? {}, { rpm: 20 });
      Object.assign(models ?? {}, { fast: 'openai/gpt-5' });
    });
    expect(diff(FILE, after)).to.deep.equal([
      '-  fast: openai/gpt-5-mini   # cheap',
      '-    rpm: 10 # a minute',
      '+  fast: openai/gpt-5   # cheap',
      '+    rpm: 20 # a minute',
    ]);
  });

  it('keeps the comments and references of an entry whose other fields change', () => {
    const after = edit(({ plans }) => Object.assign(plans?.['free'] ?? {}, { concurrency: 2, models: ['fast'] }));
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
    const end = '    tpm: ${TPM}\n';
    expect(after).to.equal(FILE.replace(end, `${end}    concurrency: 2\n    models:\n      - fast\n`));
  });

  it('adds, removes and changes items of a list in place', () => {
    const after = edit(({ models }) => {
      const smart = models?.['smart'] as { targets: unknown[] };
      smart.targets = ['openai/gpt-5', 'openai/o5', { to: 'openai/gpt-5-mini', order: 2 }];
    });
    expect(diff(FILE, after)).to.deep.equal(['+      - openai/o5']);
    const without = edit(({ models }) => {
      const smart = models?.['smart'] as { targets: unknown[] };
      smart.targets.pop();
    });
    expect(diff(FILE, without)).to.deep.equal(['-      - to: openai/gpt-5-mini', '-        order: 2']);
  });

  it('loses the lines of a removed entry, and of a section that becomes empty', () => {
    expect(
      diff(
        FILE,
        edit(({ models }) => delete models?.['fast']),
      ),
    ).to.deep.equal(['-  fast: openai/gpt-5-mini   # cheap']);
    expect(
      diff(
        FILE,
        edit((values) => delete values['plans']),
      ),
    ).to.deep.equal([
      '-plans:',
      '-  free: # everyone',
      '-    rpm: 10 # a minute',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
      '-    tpm: ${TPM}',
    ]);
  });

  it('gets a new section at its end', () => {
    const after = edit((values) => Object.assign(values, { budgets: [{ name: 'all', amount_usd: 5, every: 'day' }] }));
    expect(diff(FILE, after)).to.deep.equal(['+budgets:', '+  - name: all', '+    amount_usd: 5', '+    every: day']);
  });

  it('keeps brackets where the file has them', () => {
    const after = edit(({ providers }) => Object.assign(providers?.['openai'] ?? {}, { models: ['gpt-5', '+o5'] }));
    expect(diff(FILE, after)).to.deep.equal(["-    models: [gpt-5, 'gpt-5-mini']", '+    models: [ gpt-5, +o5 ]']);
  });

  it('keeps the line ends of the file', () => {
    const text = FILE.replaceAll('\n', '\r\n');
    const after = edit(({ models }) => Object.assign(models ?? {}, { cheap: ['a/b', 'c/d'] }), text);
    expect(after.replaceAll('\r\n', '')).not.to.match(/[\r\n]/);
  });

  it('is refused if comments in brackets would be lost', () => {
    const text = 'models: {\n  fast: a/b, # cheap\n}\nserver: {}\n';
    expect(() => edit(({ models }) => Object.assign(models ?? {}, { more: 'a/c' }), text)).to.throw(EditError, 'lost');
  });

  it('is refused if an anchor of another entry would be lost', () => {
    const text = 'plans:\n  free: &base\n    rpm: 1\n  more: *base\nserver: {}\n';
    expect(() => edit(({ plans }) => delete plans?.['free'], text)).to.throw();
  });

  it('keeps the indentation of JSON, and its missing last line end', () => {
    const text = '{\n\t"models": {\n\t\t"a": "b/c"\n\t}\n}';
    expect(editText(text, 'json', { models: { a: 'b/d' } })).to.equal(text.replace('b/c', 'b/d'));
  });

  it('has exactly the wanted values, whatever they were', () => {
    const word = fc.oneof(
      fc.string({ maxLength: 12 }),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
      fc.constantFrom('a/b', '${X}', '- x', 'on', '#', 'x: y', 'é\n  z\n'),
    );
    const leaf = fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null));
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b', 'x y', '1', 'c:d'), tie('value'), {
          maxKeys: 3,
          noNullPrototype: true,
        }),
      ),
    }));
    const values = fc.dictionary(fc.constantFrom('models', 'plans', 'server', 'x'), value, {
      minKeys: 1,
      noNullPrototype: true,
    });
    fc.assert(
      fc.property(values, values, (before, after) => {
        const first = editText('keep: 1 # stays\n', 'yaml', { keep: 1, ...before } as Values);
        const wanted = { keep: 1, ...after } as Values;
        try {
          const text = editText(first, 'yaml', wanted);
          expect(valuesOf(text, 'yaml')).to.deep.equal(wanted);
          expect(text).to.match(/^keep: 1 # stays$/m);
        } catch (error) {
          expect(error, JSON.stringify({ first, wanted })).to.be.instanceOf(EditError);
          throw error;
        }
      }),
      { numRuns: 60 },
    );
  });
});
