import { LANGUAGES } from '../../../plugins/agents/medical/engine/language.ts';
import { RELEASE_RULES } from '../../../plugins/agents/medical/release-rules/index.ts';
import { RULES, SIGNS_TOGETHER } from '../../../plugins/agents/medical/rules/index.ts';
import { type Measured, measurePart, PARTS, type Part, type Phrasing } from './measure-medical.ts';

const KINDS: Readonly<Record<Phrasing['kind'], string>> = Object.freeze({
  emergency: 'emergencies found',
  harmless: 'false alarms',
  dose: 'doses and changes stopped',
  dose_harmless: 'harmless advice stopped',
});

const TITLES: Readonly<Record<Part, string>> = Object.freeze({
  authoring: 'The part that the rules were written with',
  held: 'A part that the rules’ first author had not seen, since then read and mended by',
  blind: 'A part that was written before its author read the rules, since then read and mended by',
  'blind-2': 'Phrasings that were written before their author read the rules',
  'blind-3-mended': 'A later half of such phrasings, which the rules were mended by',
  'blind-3-held': 'The other half of them, counted and never read one by one',
  'strangers-dev': 'A half of the words of a stranger to the rules, which the weights were found with',
  'strangers-held': 'The other half of these, counted and never read one by one',
  'fresh-dev': 'Everyday complaints and urgent ones with them, which the weights were found with',
  'fresh-held': 'Phrasings written before all of these, counted and never read one by one',
  'later-dev': 'Two thirds of later phrasings, which the weights were found with',
  'later-held': 'The other third of these, counted and never read one by one',
  'others-held': 'Words of two more strangers, written after the weights were found, counted and never read one by one',
});

/** Generated part of `docs/plugins/medical-figures.md`: figures per language, group and style, and the rules. */
export function formatMedical(): string {
  const parts = PARTS.map((part) => [part, measurePart(part)] as const).filter(([, measured]) => measured.length > 0);
  const sections = parts.flatMap(([part, measured]) => [
    `### ${TITLES[part]}`,
    ...tablesOf(measured),
    ...(part === 'blind-2' ? wrongOf(measured) : []),
  ]);
  return [...sections, ...ruleTables()].join('\n\n');
}

/** Phrasings that the rules judged wrong. */
function wrongOf(measured: readonly Measured[]): readonly string[] {
  const listOf = (kind: Phrasing['kind'], isFound: boolean) =>
    measured
      .filter((one) => one.kind === kind && one.found === isFound)
      .map(({ language, text, rules }) => `- ${language}: "${text}"${isFound ? ` (\`${rules.join('`, `')}\`)` : ''}`)
      .join('\n');
  return [
    'Emergencies that were not found:',
    listOf('emergency', false),
    'False alarms, with the rules that held:',
    listOf('harmless', true),
  ];
}

function tablesOf(measured: readonly Measured[]): readonly string[] {
  const emergencies = measured.filter(({ kind }) => kind === 'emergency');
  const kinds = Object.keys(KINDS) as readonly Phrasing['kind'][];
  return [
    table(
      'kind',
      kinds.map((kind) => [KINDS[kind], measured.filter((one) => one.kind === kind)]),
    ),
    table('emergencies by group', byField(emergencies, 'group')),
    table('emergencies by style', byField(emergencies, 'style')),
    table(
      'the other kinds by style',
      kinds.slice(1).flatMap((kind) => {
        const rows = byField(
          measured.filter((one) => one.kind === kind),
          'style',
        );
        return rows.map(([style, ofStyle]) => [`${KINDS[kind]}: ${style}`, ofStyle] as const);
      }),
    ),
  ];
}

type Row = readonly [title: string, measured: readonly Measured[]];

function byField(measured: readonly Measured[], field: 'group' | 'style'): readonly Row[] {
  const names = [...new Set(measured.map((one) => one[field]))];
  return names.map((name) => [name, measured.filter((one) => one[field] === name)]);
}

function table(title: string, rows: readonly Row[]): string {
  const lines = rows.map(([name, measured]) => {
    const cells = LANGUAGES.map((language) => cell(measured.filter((one) => one.language === language)));
    return `| ${[name, ...cells, cell(measured)].join(' | ')} |`;
  });
  return [
    `| ${title} | ${LANGUAGES.join(' | ')} | all |`,
    `|---|${'---|'.repeat(LANGUAGES.length + 1)}`,
    ...lines,
  ].join('\n');
}

function cell(measured: readonly Measured[]): string {
  const found = measured.filter((one) => one.found).length;
  if (measured.length === 0) return '–';
  return `${found} of ${measured.length} (${Math.round((100 * found) / measured.length)} %)`;
}

function ruleTables(): readonly string[] {
  const rules = [...RULES, SIGNS_TOGETHER].map(
    ({ id, version, urgency, source, reviewed }) =>
      `| \`${id}\` | ${version} | ${urgency} | ${source.title} | ${reviewed ? `${reviewed.by}, ${reviewed.on}` : '–'} |`,
  );
  const release = RELEASE_RULES.map(
    ({ id, version, source, reviewed }) =>
      `| \`${id}\` | ${version} | ${source.title} | ${reviewed ? `${reviewed.by}, ${reviewed.on}` : '–'} |`,
  );
  return [
    '### Rules over what somebody writes',
    ['| Rule | Version | Urgency | Written from | Reviewed by |', '|---|---|---|---|---|', ...rules].join('\n'),
    '### Rules over what is generated',
    ['| Rule | Version | Written from | Reviewed by |', '|---|---|---|---|', ...release].join('\n'),
  ];
}

const START = '<!-- figures: written by npm run medical -->';
const END = '<!-- end -->';

/** Returns the page with its generated part from the current rules and set. */
export function withFigures(page: string): string {
  const [before = '', rest = ''] = page.split(START);
  const [, after = ''] = rest.split(END);
  return `${before}${START}\n\n${formatMedical()}\n\n${END}${after}`;
}
