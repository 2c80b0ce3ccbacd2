// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { expect } from 'chai';
import { ConfigError, formatProblem } from '../../config/problems.ts';
import { removeFolders } from '../support/folders.ts';
import { problemLines } from './config-plugins.ts';
import { PROBLEM_CASES, type ProblemCase } from './config-problems.ts';

/** Files without any configuration. */
const FILE_CASES: readonly ProblemCase[] = [
  {
    title: 'a key that stands twice',
    text: 'billing: off\nbilling: track\n',
    problems: ['2:1 is not valid YAML: Map keys must be unique.'],
  },
  {
    title: 'invalid YAML',
    text: 'server: { port: 1\nbilling: "off\n',
    problems: ['*is not valid YAML'],
  },
  {
    title: 'a reference without quotes between braces',
    text: 'providers:\n  acme: { apiKey: ${KEY}, models: [a] }\n',
    problems: ["2:19 is not valid YAML: a text with a reference in brackets is not quoted. Quote it: '${KEY}'."],
  },
  {
    title: 'a text with a reference without quotes in a list of several lines',
    text: 'providers:\n  acme:\n    models: [\n      one,\n      pre-${A:-x}-post ]\n',
    problems: [
      "5:7 is not valid YAML: a text with a reference in brackets is not quoted. Quote it: 'pre-${A:-x}-post'.",
    ],
  },
  { title: 'an empty file', text: '', problems: ['*is empty'] },
  { title: 'a file of comments', text: '# nothing\n', problems: ['*is empty'] },
  { title: 'a list', text: '- a\n', problems: ['*is not a map of sections'] },
  { title: 'a text', text: 'hello\n', problems: ['*is not a map of sections'] },
  {
    title: 'names of JavaScript',
    text: '__proto__: { a: 1 }\nproviders: { constructor: {} }\n',
    problems: ['1:1 __proto__: is not an allowed name.', '2:14 providers.constructor: is not an allowed name.'],
  },
  {
    title: 'an anchor repeated until it is gigabytes',
    text: `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
      .split('')
      .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[index]}`).join(',')}]`)
      .join('\n')}\n`,
    problems: ['*Excessive alias count'],
  },
];

describe('the problems of a configuration', () => {
  afterEach(removeFolders);

  for (const { title, text, input, problems } of [...PROBLEM_CASES, ...FILE_CASES]) {
    it(`report ${title}`, async () => {
      const lines = await problemLines(text, input);
      const [only] = problems;
      if (only?.startsWith('*')) {
        expect(lines[0]).to.include('tollgate.config.yaml');
        expect(lines.join('\n')).to.include(only.slice(1));
      } else {
        expect(lines).to.deep.equal(problems.map((problem) => `tollgate.config.yaml:${problem}`));
      }
    });
  }

  it('have places in JSON as well', async () => {
    const text = '{\n\t"server": {\n\t\t"prot": 1,\n\t\t"port": "x"\n\t}\n}\n';
    expect(await problemLines(text, { name: 'tollgate.config.json' })).to.deep.equal([
      'tollgate.config.json:3:3 server.prot: unknown key. Did you mean "port"?',
      'tollgate.config.json:4:11 server.port: must be a whole number, not the text "x".',
    ]);
  });

  it('have places in package.json relative to the whole file', async () => {
    const text = '{\n  "name": "x",\n  "tollgate": {\n    "billing": "of"\n  }\n}\n';
    expect(await problemLines(text, { name: 'package.json' })).to.deep.equal([
      'package.json:4:16 billing: must be off, track or enforce, not the text "of". Did you mean "off"?',
    ]);
  });

  it('have places in the files that a configuration imports', async () => {
    const files = { 'shared/plans.yaml': 'plans:\n  free: { rpm: -1 }\nbilling: of\n' };
    expect(await problemLines('$import: ./shared/plans.yaml\nbilling: no\n', { files })).to.deep.equal([
      'shared/plans.yaml:2:16 plans.free.rpm: must be at least 0, not -1.',
      'tollgate.config.yaml:2:10 billing: must be off, track or enforce, not the text "no".',
    ]);
  });

  it('name the imported file with a syntax error', async () => {
    const [line] = await problemLines('$import: ./a.json\n', { files: { 'a.json': '{' } });
    expect(line).to.equal('a.json:1:2 is not valid JSON: expected a name in double quotes, the file ends.');
  });

  it('name only the file if the format has no places', async () => {
    expect(await problemLines('export default { billing: "of" };\n', { name: 'tollgate.config.mjs' })).to.deep.equal([
      'tollgate.config.mjs billing: must be off, track or enforce, not the text "of". Did you mean "off"?',
    ]);
  });

  const scripts: readonly [title: string, text: string, problem: string][] = [
    ['a function', 'export default { models: { a: () => 1 } }', 'models.a: is a function, not data'],
    ['an object of a class', 'export default { plans: new Map() }', 'plans: is an object of a class, not data'],
    ['NaN', 'export default { server: { port: NaN } }', 'server.port: is the number NaN, not data'],
  ];
  for (const [title, text, problem] of scripts) {
    it(`report ${title} among the values of a module`, async () => {
      expect(await problemLines(text, { name: 'tollgate.config.mjs' })).to.deep.equal([
        `tollgate.config.mjs ${problem}. Use text, numbers, true, false, lists and maps only.`,
      ]);
    });
  }

  it('report a circular value of a module', async () => {
    const lines = await problemLines('const a = {}; a.plans = a; export default a;', { name: 'tollgate.config.mjs' });
    expect(lines.join('\n')).to.include('is nested deeper than 64 levels, or contains itself');
  });

  it('are all in one message with their number', () => {
    const problems = [
      { file: 'a.yaml', line: 2, column: 1, path: 'b', message: 'is wrong', hint: 'Mend it.' },
      { file: 'a.yaml', line: 1, column: 1, path: '', message: 'is odd' },
    ];
    expect(new ConfigError(problems).message).to.equal(
      'a.yaml:1:1 is odd.\na.yaml:2:1 b: is wrong. Mend it.\n2 problems in the configuration',
    );
    expect(formatProblem({ file: 'a.ts', path: '', message: 'is odd.' })).to.equal('a.ts is odd.');
  });
});
