import type { FieldRules, Schema } from '../../../core/index.ts';
import { PROVIDER_OPTIONS } from '../../../plugins/providers/kit/index.ts';
import type { BuiltInProvider } from '../plugins/all-providers.ts';

const VERBS = {
  passed: 'passed',
  renamed: 'renamed',
  emulated: 'emulated',
  dropped: 'dropped',
  refused: 'refused',
} as const;

/** `docs/providers/<name>.md`: what the provider's own data says, for people. */
export function formatProviderPage({ name, plugin, provider }: BuiltInProvider): string {
  const { fields: table, credential, baseUrl } = provider;
  const options = Object.entries(ownOptions(plugin.configSchema)).map(
    ([option, { description }]) => `- \`${option}\`: ${String(description ?? '')}`,
  );
  return [
    `# ${name}`,
    '',
    'Written from the plugin’s own data by `npm run matrix`; `test/docs/provider-pages.test.ts` holds it to that.',
    `What was tested is in [the matrix](matrix.md).`,
    '',
    `- Base URL: \`${baseUrl}\``,
    credential?.required === false
      ? '- Key: none needed.'
      : `- Key: \`apiKey\`${credential?.env ? `, usually from \`${credential.env}\`` : ''}, sent as \`${credential?.header}\`.`,
    `- Embeddings: ${provider.embed ? 'yes' : 'no'}. Model list from the vendor: ${provider.listModels ? 'yes' : 'no'}.`,
    '',
    ...(options.length > 0 ? ['Options of its own:', '', ...options, ''] : []),
    ...(table
      ? [
          '## Request fields',
          '',
          table.unknown === 'passed'
            ? 'Fields that are not in the table are passed as they are.'
            : `Other fields of OpenAI’s are passed; fields that OpenAI does not have are dropped${extrasText(table.extras)}.`,
          'A dropped field is named in `x-tollgate-dropped`, a refused one answers 400 with its name in `param`.',
          '',
          ...rulesTable(table.fields),
          ...(table.variants ?? []).flatMap((variant) => [
            `### ${variant.when}`,
            '',
            'Laid over the table above.',
            '',
            ...rulesTable(variant.fields),
          ]),
          ...listOf('What its answers never show', Object.entries(table.lacks ?? {}).map(lackText)),
          ...listOf('Good to know', table.notes ?? []),
        ]
      : []),
  ].join('\n');
}

function listOf(title: string, lines: readonly string[]): readonly string[] {
  return lines.length > 0 ? [`## ${title}`, '', ...lines.map((line) => `- ${line}`), ''] : [];
}

function lackText([feature, why]: readonly [string, string]): string {
  return `${sentence(feature).slice(0, -1)}: ${why}.`;
}

function rulesTable(fields: FieldRules): readonly string[] {
  const rows = Object.entries(fields)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([field, rule]) => {
      const does = `${VERBS[rule.rule]}${rule.to === undefined ? '' : ` to \`${rule.to}\``}`;
      const range = rule.min === undefined && rule.max === undefined ? '' : `${rule.min} to ${rule.max}. `;
      const neutral = rule.neutral
        ? ` Not for ${rule.neutral.map((value) => `\`${JSON.stringify(value)}\``).join(', ')}.`
        : '';
      return `| \`${field}\` | ${does} | ${`${range}${sentence(rule.note)}${neutral}`.trim()} |`;
    });
  return ['| Field | Rule | |', '|---|---|---|', ...rows, ''];
}

function sentence(note = ''): string {
  if (note === '') return '';
  const begun = note.startsWith('`') ? note : `${note.charAt(0).toUpperCase()}${note.slice(1)}`;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

function extrasText(extras: readonly string[] | undefined): string {
  return extras && extras.length > 0 ? `, but for ${extras.map((field) => `\`${field}\``).join(', ')}` : '';
}

function ownOptions(schema: object | undefined): Readonly<Record<string, Schema>> {
  const { properties = {} } = (schema ?? {}) as { readonly properties?: Readonly<Record<string, Schema>> };
  return Object.fromEntries(Object.entries(properties).filter(([option]) => !(option in PROVIDER_OPTIONS)));
}
