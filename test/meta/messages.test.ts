import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { COMMANDS } from '../../cli/program.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { ERRORS } from '../../contract/errors.ts';
import { FAILURES, failureToError } from '../../contract/failures.ts';
import type { FailureClass } from '../../contract/provider.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { readSources } from './source-tree.ts';

/** Maximum words of a message, a description or a help text. */
const MOST_WORDS = 30;

interface Text {
  readonly place: string;
  readonly text: string;
}

const countWords = (text: string): number => text.match(/\S+/g)?.length ?? 0;

/** Texts over the limit, each on a line with its place. */
function listLong(texts: readonly Text[]): string {
  const long = texts.filter(({ text }) => countWords(text) > MOST_WORDS);
  return long.map(({ place, text }) => `${place}: ${countWords(text)} words: ${text}`).join('\n');
}

/** String values of fields with these names, at any depth. */
function fieldsIn(value: unknown, names: readonly string[], place = ''): readonly Text[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) =>
    names.includes(name) && typeof field === 'string'
      ? [{ place, text: field }]
      : fieldsIn(field, names, `${place}/${name}`),
  );
}

/** Beginning of an error or a line of the log. */
const MESSAGE = /\bnew \w*Error\(|\blog\.(?:warn|error|info)\(/g;
/** A text, with computed parts up to two levels deep. */
const TEXT = /'(?:\\.|[^'\\\n])*'|`(?:\\.|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^`\\])*`/y;

/** Messages in source code: texts of each error and log line. A computed part counts as one word. */
function messagesIn(name: string, code: string): readonly Text[] {
  return [...code.matchAll(MESSAGE)].flatMap(({ index, 0: { length } }) => {
    const texts: string[] = [];
    let depth = 1;
    let isJoined = false;
    for (let at = index + length; at < code.length && depth > 0; ) {
      TEXT.lastIndex = at;
      const [found] = TEXT.exec(code) ?? [];
      if (found === undefined) {
        const char = code[at] ?? '';
        if ('([{'.includes(char)) depth += 1;
        if (')]}'.includes(char)) depth -= 1;
        if (/\S/.test(char)) isJoined = char === '+';
        at += 1;
        continue;
      }
      const text = found.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, 'X');
      if (isJoined) texts.push(`${texts.pop() ?? ''}${text}`);
      else texts.push(text);
      at += found.length;
    }
    const line = code.slice(0, index).split('\n').length;
    return texts.map((text) => ({ place: `${name}:${line}`, text }));
  });
}

describe(`texts of at most ${MOST_WORDS} words`, () => {
  it('are all errors and lines of the log', () => {
    const sources = readSources(
      'contract',
      'core',
      'config',
      'cli',
      'egress',
      'models',
      'openapi',
      'plugins',
      'routing',
    );
    const texts = sources.flatMap(({ name, code }) => messagesIn(name, code));
    expect(texts.length).to.be.greaterThan(800);
    expect(listLong(texts)).to.equal('');
  });

  it('are found in code, joined and with computed parts', () => {
    const computed = ['`Budget of $', '{f({ a: 1 })} used: `'].join('');
    const code = `throw new GatewayError('x', ${computed} + 'wait.', { cause });\nlog.warn({}, 'It\\'s late');`;
    expect(messagesIn('a.ts', code).map(({ text }) => text)).to.deep.equal([
      'x',
      'Budget of X used: wait.',
      "It\\'s late",
    ]);
  });

  it('are the explanations of all error codes', () => {
    const texts = Object.entries(ERRORS).map(([place, { when }]) => ({ place, text: when }));
    expect(listLong(texts)).to.equal('');
  });

  it('are all errors of providers, and those without words of the vendor end with a remedy', () => {
    const texts = (Object.keys(FAILURES) as FailureClass[]).map((kind) => ({
      place: kind,
      text: failureToError({ class: kind, message: '' }, 'acme').message,
    }));
    expect(listLong(texts)).to.equal('');
    const REMEDY = /\. (?:Ask|Try|Use|Send|Change|Check) [^.]+\.$/;
    const open = texts.filter(({ place, text }) => place !== 'broken_off' && !REMEDY.test(text));
    expect(open).to.deep.equal([]);
  });

  it('are all descriptions of the configuration', () => {
    const schema: unknown = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'config/tollgate.schema.json'), 'utf8'));
    expect(listLong(fieldsIn(schema, ['description']))).to.equal('');
  });

  it('are all summaries and options in tollgate --help', () => {
    const rows = COMMANDS.flatMap((row) => [row, ...(row.subcommands ?? [])]);
    const texts = rows.flatMap(({ name, summary, args = [], options = [] }) =>
      [summary, ...[...args, ...options].map(([, text]) => text)].map((text) => ({ place: name, text })),
    );
    expect(listLong(texts)).to.equal('');
  });

  describe('in a gateway', () => {
    let gateway: TestGateway;
    before(async () => {
      gateway = await startGateway();
    });
    after(() => gateway?.stop());

    it('are the help of all metrics', async () => {
      const text = await (await gateway.get('/metrics')).text();
      const help = [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, place = '', found = '']) => ({
        place,
        text: found,
      }));
      expect(help.length).to.be.greaterThan(30);
      expect(listLong(help)).to.equal('');
    });

    it('are all summaries and descriptions of the OpenAPI document', async () => {
      const document: unknown = await (await gateway.get('/openapi.json')).json();
      const texts = fieldsIn(document, ['summary', 'description']);
      expect(texts.length).to.be.greaterThan(1000);
      expect(listLong(texts)).to.equal('');
    });
  });
});
