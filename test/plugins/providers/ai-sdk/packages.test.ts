import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { openPackage } from '../../../../plugins/providers/ai-sdk/package.ts';
import { respondWith, type Script } from '../../../support/vendors/scripted-upstream.ts';
import { fileOf, PACKAGES, respondAs, startAi } from './rig.ts';

const require = createRequire(import.meta.url);
const PAGE = new URL('../../../../docs/providers/ai-sdk.md', import.meta.url);

/** Packages of the table that have a language model of another wire, with the folder of the vendor's bytes. */
const BYTES: Readonly<Record<string, { readonly folder: string; readonly options: object }>> = {
  '@ai-sdk/amazon-bedrock': {
    folder: 'bedrock',
    options: { region: 'us-east-1', accessKeyId: 'AKID', secretAccessKey: 'secret' },
  },
  '@ai-sdk/cohere': { folder: 'cohere', options: {} },
};
const OTHERS = ['@ai-sdk/huggingface', '@ai-sdk/openai', '@ai-sdk/replicate'];
const NAMES = [...Object.keys(PACKAGES), ...Object.keys(BYTES), ...OTHERS].toSorted();

interface ChatBody {
  readonly choices: readonly {
    readonly message: { content?: string; reasoning_content?: string; tool_calls?: readonly unknown[] };
  }[];
  readonly usage: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } };
}

/** Whole responses of a scripted vendor that together have every part. */
function scriptsOf(name: string): readonly Script[] {
  const known = PACKAGES[name];
  if (known)
    return [
      respondAs(known.wire, {
        pieces: [
          { reasoning: 'I look.' },
          { text: 'Done.' },
          { call: 'look', id: 'call_1', arguments: '{"day":"mon"}' },
        ],
        usage: { prompt: 100, completion: 40, cached: 60 },
      }),
    ];
  const folder = new URL(`../../../fixtures/${BYTES[name]?.folder}/`, import.meta.url);
  return readdirSync(folder)
    .filter((file) => /^chat(?:-tools)?\.json$/.test(file))
    .map(
      (file): Script =>
        ({ send }) =>
          send(respondWith(200, JSON.parse(readFileSync(new URL(file, folder), 'utf8')))),
    );
}

/** Parts of a response that reach the caller. */
async function survivorsOf(name: string): Promise<string> {
  const own = BYTES[name];
  const rig = await startAi(name, own && { package: fileOf(name), options: own.options });
  try {
    const found = new Set<string>();
    for (const script of scriptsOf(name)) {
      rig.vendor.script(script);
      const response = await rig.gateway.post('/v1/chat/completions', {
        ...{ model: 'acme/m-1', messages: [{ role: 'user', content: 'Hi' }] },
        tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
      });
      const body = (await response.json()) as ChatBody;
      expect(response.status, JSON.stringify(body) + rig.gateway.logText()).to.equal(200);
      const [{ message } = { message: {} }] = body.choices;
      if (message.content) found.add('text');
      if (message.reasoning_content) found.add('thoughts');
      if (message.tool_calls?.length) found.add('calls');
      if (body.usage.prompt_tokens > 0) found.add('tokens');
      if ((body.usage.prompt_tokens_details?.cached_tokens ?? 0) > 0) found.add('cached tokens');
    }
    return ['text', 'thoughts', 'calls', 'tokens', 'cached tokens'].filter((each) => found.has(each)).join(', ');
  } finally {
    await rig.stop();
  }
}

const KINDS = ['chat', 'embeddings', 'images', 'speech', 'transcription'] as const;

/** Kinds of models that a package makes, with their specification. */
async function kindsOf(name: string): Promise<{ readonly version: string; readonly kinds: readonly string[] }> {
  const settings = {
    ...PACKAGES[name]?.options,
    ...BYTES[name]?.options,
    apiKey: 'key',
    apiToken: 'key',
    modelURL: 'http://127.0.0.1:9/sync/v1',
  };
  const own = await openPackage({ package: fileOf(name), settings, baseDir: process.cwd() });
  const made = KINDS.flatMap((kind) => {
    try {
      return [{ kind, version: own.model(kind, 'm-1').specificationVersion }];
    } catch {
      return [];
    }
  });
  return { version: [...new Set(made.map(({ version }) => version))].join(', '), kinds: made.map(({ kind }) => kind) };
}

async function rowOf(name: string): Promise<string> {
  const { version } = require(`${name}/package.json`) as { readonly version: string };
  const { version: spec, kinds } = await kindsOf(name);
  const isTested = name in PACKAGES || name in BYTES;
  const chat = kinds.includes('chat') ? (isTested ? await survivorsOf(name) : 'not tested') : 'no language model';
  const others = kinds.filter((kind) => kind !== 'chat').join(', ') || 'none';
  return `| \`${name}\` ${version} | ${spec} | ${chat} | ${others} |`;
}

describe('the page on packages of the AI SDK', () => {
  it('44: shows what survives of a response by each package, and the operations that it has', async () => {
    const rows: string[] = [];
    for (const name of NAMES) rows.push(await rowOf(name));
    const table = ['| Package | Specification | Chat | Other operations |', '|---|---|---|---|', ...rows].join('\n');
    const page = readFileSync(PAGE, 'utf8');
    const written = page.replace(/^\| Package \| Specification \|.*\n(?:\|.*\n)*/m, `${table}\n`);
    if (process.env['UPDATE'] === '1') writeFileSync(PAGE, written);
    else expect(page, 'write it by UPDATE=1').to.equal(written);
    expect(written).to.include(table);
  });
});
