import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { CELL, type Cell } from '../../../conformance/cells.ts';
import { type RunnerFunctions, testProvider } from '../../../conformance/index.ts';
import { CONVERSATIONS } from '../../../conformance/provider-messages.ts';
import { SAMPLES } from '../../../conformance/provider-samples.ts';
import { assertOpenAi } from '../../../support/formats/openai-schemas.ts';
import type { ScriptedOutput } from '../../../support/vendors/vendor-wires.ts';
import { testOperations } from './kit-operations.ts';
import { openSubject, type PackageSubject, pluginOf, recordFixtures, requestOf, sayAs } from './kit-subject.ts';
import { ALL_PACKAGES } from './rig.ts';

const require = createRequire(import.meta.url);
const PAGE = new URL('../../../../docs/providers/ai-sdk.md', import.meta.url);

/** OpenAI's own schemas. */
const VALIDATE = {
  response: (value: unknown) => assertOpenAi('response', value),
  chunk: (value: unknown) => assertOpenAi('chunk', value),
  embeddings: (value: unknown) => assertOpenAi('embeddings', value),
};

/** Test of the kit, which mocha returns. */
interface KitTest {
  readonly state?: string;
  readonly [CELL]?: Cell;
}

const SUBJECTS: readonly PackageSubject[] = await Promise.all(Object.keys(ALL_PACKAGES).map(openSubject));
const TESTS = new Map<string, KitTest[]>();
const OPERATIONS = new Map<string, readonly string[]>();

for (const subject of SUBJECTS) {
  const tests: KitTest[] = [];
  TESTS.set(subject.name, tests);
  const runner: RunnerFunctions = {
    ...{ describe, before, after },
    it(title, body) {
      const test = it(title, body);
      tests.push(test as KitTest);
      return test;
    },
  };
  const fixtures = await recordFixtures(subject);
  testProvider({ plugin: pluginOf(subject), config: subject.config, fixtures, validate: VALIDATE, runner });
  OPERATIONS.set(subject.name, await testOperations(subject, runner));
}

/** Fields of requests that the plugin sends to packages. */
const FIELDS = [
  ...['max_tokens', 'temperature', 'top_p', 'top_k', 'stop', 'seed', 'frequency_penalty', 'presence_penalty'],
  ...['tools', 'tool_choice', 'response_format', 'reasoning_effort'],
] as const;
const OWN_SAMPLES: Readonly<Record<string, unknown>> = { top_k: 3 };

/** Contents of a user's message, and the words that must reach the vendor. */
const CONTENTS: readonly { readonly feature: string; readonly part: object; readonly arrives: readonly string[] }[] = [
  {
    feature: 'sound',
    part: { type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } },
    arrives: ['UklGRiQAAABXQVZF'],
  },
  {
    feature: 'PDF files',
    part: { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQ=' } },
    arrives: ['JVBERi0xLjQ='],
  },
];

const SAID: ScriptedOutput = { pieces: [{ text: 'Done' }] };

type Outcome = 'arrives' | 'reported' | 'refused' | 'lost';

/** What becomes of a part of a request. The calls are as the gateway makes them. */
async function outcomeOf(
  subject: PackageSubject,
  fields: object,
  arrives: (sent: string) => boolean,
  names: readonly string[],
): Promise<Outcome> {
  const request = await requestOf(subject, fields).catch(() => undefined);
  if (!request) return 'refused';
  const { status, text, sent, dropped } = await subject.exchange(request, sayAs(subject.packaged, SAID));
  if (status !== 200) {
    expect(text, `${subject.name} refuses with an error that names the remedy`).to.match(
      /UnsupportedFunctionality|NotTaken/,
    );
    return 'refused';
  }
  if (names.some((name) => [...dropped, ...(request.dropped ?? [])].includes(name))) return 'reported';
  return arrives(sent.map(({ body }) => bodyText(body)).join('')) ? 'arrives' : 'lost';
}

function bodyText(body: unknown): string {
  return body instanceof Uint8Array ? Buffer.from(body).toString() : JSON.stringify(body ?? '');
}

async function passagesOf(subject: PackageSubject): Promise<ReadonlyMap<string, Outcome>> {
  const found = new Map<string, Outcome>();
  for (const field of FIELDS) {
    const { value = OWN_SAMPLES[field], requires = {} } = SAMPLES[field] ?? {};
    const plain = await subject.exchange(await requestOf(subject, requires), sayAs(subject.packaged, SAID));
    const without = plain.sent.map(({ body }) => bodyText(body)).join('');
    found.set(
      `\`${field}\``,
      await outcomeOf(subject, { ...requires, [field]: value }, (sent) => sent !== without, [field]),
    );
  }
  for (const { feature, messages, arrives } of CONVERSATIONS)
    found.set(
      feature,
      await outcomeOf(
        subject,
        { messages, ...(hasResults(messages) && SAMPLES['tool_choice']?.requires) },
        (sent) => arrives.every((word) => sent.includes(word)),
        ['file'],
      ),
    );
  for (const { feature, part, arrives } of CONTENTS)
    found.set(
      feature,
      await outcomeOf(
        subject,
        { messages: [{ role: 'user', content: [{ type: 'text', text: 'See' }, part] }] },
        (sent) => arrives.every((word) => sent.includes(word)),
        ['file'],
      ),
    );
  return found;
}

const hasResults = (messages: readonly { readonly role: string }[]): boolean =>
  messages.some(({ role }) => role === 'tool');

/** Features of the kit that a package has not, or that have failed. */
function missingOf({ name }: PackageSubject): readonly string[] {
  const tests = TESTS.get(name) ?? [];
  expect(tests.filter(({ state }) => state !== 'passed').length, `tests of ${name} that have not passed`).to.equal(0);
  const cells = tests.flatMap(({ [CELL]: cell }) => (cell?.says === 'not offered' ? [cell.feature] : []));
  // No package has log probabilities or lists of models; the rest is of requests, or in a column of its own.
  const others = /log probabilities|model list|^embeddings|^`|^streamed /;
  return [...new Set(cells)].filter((feature) => !others.test(feature));
}

async function rowOf(subject: PackageSubject): Promise<string> {
  const { name, kinds, specification } = subject;
  const own = require(`${name}/package.json`) as {
    readonly name: string;
    readonly version: string;
    engines: { node: string };
  };
  const passages = kinds.includes('chat') ? [...(await passagesOf(subject))] : [];
  const by = (outcome: Outcome): string =>
    passages.flatMap(([feature, found]) => (found === outcome ? [feature] : [])).join(', ') || 'none';
  expect(by('lost'), `lost without a report by ${name}`).to.equal('none');
  const tested = OPERATIONS.get(name) ?? [];
  const others =
    kinds
      .flatMap((kind) => (kind === 'chat' ? [] : [tested.includes(kind) ? kind : `${kind} (not tested)`]))
      .join(', ') || 'none';
  const cells = [
    ...[`\`${own.name}\` ${own.version}`, own.engines.node.replace('>=', ''), specification],
    ...(kinds.includes('chat')
      ? [missingOf(subject).join(', ') || 'none', by('reported'), by('refused')]
      : ['no language model', 'none', 'none']),
    others,
  ];
  return `| ${cells.join(' | ')} |`;
}

const HEAD = [
  '| Package | Node | Specification | Not in responses | Reported as dropped | Refused | Other operations |',
  '|---|---|---|---|---|---|---|',
];

describe('the page on packages of the AI SDK', () => {
  it('44: shows what survives by each package, after the kit', async () => {
    const rows: string[] = [];
    for (const subject of SUBJECTS) rows.push(await rowOf(subject));
    const table = [...HEAD, ...rows].join('\n');
    const page = readFileSync(PAGE, 'utf8');
    const written = page.replace(/^\| Package \| (?:Node|Specification) \|.*\n(?:\|.*\n)*/m, `${table}\n`);
    if (process.env['UPDATE'] === '1') writeFileSync(PAGE, written);
    else expect(page, 'write it by UPDATE=1').to.equal(written);
    expect(written).to.include(table);
  });
});
