import { type AbsentWord, type DrawnTexts, type MeasuredQuery, meanOf, RAG_LANGUAGES } from './measure-rag.ts';

const START = '<!-- figures: written by npm run rag -->';
const END = '<!-- end -->';

const PARTS = Object.freeze([
  ['queries that it was made with', false],
  ['queries that it was not', true],
] as const);

const SEARCHES = Object.freeze([
  ['words as they are, pairs of characters (index version 2)', 'before'],
  ['with parts of words, and words of Chinese and Japanese', 'now'],
] as const);

/** Returns the page with its generated tables from the current search and judged set. */
export function withRagFigures(
  page: string,
  measured: readonly MeasuredQuery[],
  absent: readonly AbsentWord[],
  drawn: DrawnTexts,
): string {
  const [before = '', rest = ''] = page.split(START);
  const [, after = ''] = rest.split(END);
  const rows = PARTS.flatMap(([part, isHeld]) => {
    const own = measured.filter((one) => one.isHeld === isHeld);
    const means = (which: 'before' | 'now'): readonly number[] => [
      ...RAG_LANGUAGES.map((language) =>
        meanOf(
          own.filter((one) => one.language === language),
          which,
        ),
      ),
      meanOf(own, which),
    ];
    return SEARCHES.map(([search, which]) => {
      const cells = means(which).map((mean) => mean.toFixed(3));
      return `| ${[`${own.length} ${part}`, search, ...cells].join(' | ')} |`;
    });
  });
  const head = `| nDCG@10 | search | ${RAG_LANGUAGES.join(' | ')} | all |`;
  const table = [head, `|---|---|${'---|'.repeat(RAG_LANGUAGES.length + 1)}`, ...rows].join('\n');
  return `${before}${START}\n\n${table}\n\n${absentTable(absent)}\n\n${drawnLine(drawn)}\n\n${END}${after}`;
}

function drawnLine({ words, questions, finding }: DrawnTexts): string {
  const findingOf = (texts: readonly string[]): number => texts.filter((text) => finding.includes(text)).length;
  return `Drawn from word lists of npm packages (\`drawn.json\`), in no document: ${findingOf(words)} of ${words.length} words and ${findingOf(questions)} of ${questions.length} questions of three words find something.`;
}

function absentTable(absent: readonly AbsentWord[]): string {
  const rows = PARTS.map(([part, isHeld]) => {
    const own = absent.filter((one) => one.isHeld === isHeld);
    const cells = [...RAG_LANGUAGES.map((language) => own.filter((one) => one.language === language)), own].map(
      (words) => `${words.filter(({ found }) => found.length > 0).length} of ${words.length}`,
    );
    return `| ${[part.replace('queries', 'words'), ...cells].join(' | ')} |`;
  });
  const head = `| absent words that find something | ${RAG_LANGUAGES.join(' | ')} | all |`;
  return [head, `|---|${'---|'.repeat(RAG_LANGUAGES.length + 1)}`, ...rows].join('\n');
}
