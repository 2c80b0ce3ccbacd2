import { expect } from 'chai';
import { ALLOWED, LISTS, RETIRED, SCANNED } from './retired-words.ts';
import { readSources } from './source-tree.ts';

interface Found {
  readonly word: string;
  readonly file: string;
  readonly line: number;
  readonly say: string;
}

const found = readSources(...SCANNED)
  .filter(({ name }) => !LISTS.includes(name))
  .flatMap(({ name, text }) => findRetired(name, text));

/** True if `file` is the allowed one, or below the allowed folder. */
const isBelow = (file: string, allowed: string): boolean =>
  allowed.endsWith('/') ? file.startsWith(allowed) : file === allowed;

describe('retired words', () => {
  it('are in no source file, unless the list of what is allowed says why', () => {
    const wrong = found.filter(
      ({ word, file }) => !ALLOWED.some((row) => row.word === word && row.files.some((name) => isBelow(file, name))),
    );
    // One string, so that a failure shows all of them.
    expect(wrong.map(({ word, file, line, say }) => `${file}:${line} "${word}": say ${say}`).join('\n')).to.equal('');
  });

  it('are allowed in no file that does not have them', () => {
    const unused = ALLOWED.flatMap(({ word, files }) =>
      files
        .filter((name) => !found.some((one) => one.word === word && isBelow(one.file, name)))
        .map((name) => [word, name]),
    );
    expect(unused).to.deep.equal([]);
  });

  it('are found in parts of names, in comments and in texts, and not inside other words', () => {
    const text = [
      "const defaultFault = 'by default'; // FAULTY faults",
      '/* 10 unless',
      ' told: a purse_id; ask */',
      `const { askWorker } = mask(\`ask \${asked} it\`, "ask"); // asked, unless told`,
    ].join('\n');
    expect(findRetired('core/a.ts', text).map(({ line, word }) => [line, word])).to.deep.equal([
      [1, 'fault'],
      [1, 'faults'],
      [1, 'faulty'],
      [3, 'purse'],
      [3, 'told'],
      [4, 'unless told'],
      [4, 'told'],
      [4, 'ask'],
      [4, 'asked'],
    ]);
  });
});

/** Finds each retired word once per line. Lines are read only in files that have all parts of a retired word. */
function findRetired(file: string, text: string): readonly Found[] {
  const parts = new Set(wordsOf(text));
  const rows = RETIRED.filter(({ under = [''] }) => under.some((path) => file.startsWith(path)))
    .map((row) => ({ ...row, words: row.words.filter((word) => word.split(' ').every((part) => parts.has(part))) }))
    .filter(({ words }) => words.length > 0);
  if (rows.length === 0) return [];
  const names = rows.some(({ only }) => only === 'identifiers') ? splitLines(blankTexts(text)) : [];
  return splitLines(text).flatMap((words, index) =>
    rows.flatMap(({ words: retired, say, only }) => {
      const line = only === 'identifiers' ? (names[index] ?? '') : words;
      return retired.filter((word) => line.includes(` ${word} `)).map((word) => ({ word, file, line: index + 1, say }));
    }),
  );
}

/** Words of a text in lower case: `askWorker` has two. */
function wordsOf(text: string): readonly string[] {
  return (text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());
}

/** Words of each line, with a space around each. */
function splitLines(text: string): readonly string[] {
  return text.split('\n').map((line) => ` ${wordsOf(line).join(' ')} `);
}

/**
 * Removes comments, texts and regular expressions from code, line by line; computed parts of templates stay. Sufficient for our own
 * formatting.
 */
function blankTexts(text: string): string {
  const keepLines = (part: string): string => part.replaceAll(/[^\n]/g, ' ');
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, keepLines)
    .replaceAll(/(^|\s)\/\/ .*$/gm, '$1')
    .replaceAll(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g, ' ')
    .replaceAll(/(?<=[(,=:[!&|?]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g, ' ')
    .replaceAll(/`(?:\\.|[^`\\])*`/g, (template) =>
      template.replaceAll(/(?:^|\})[^{}]*?(?:\$\{|$)/g, (part) => keepLines(part)),
    );
}
