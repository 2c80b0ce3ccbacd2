import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../support/gateway.ts';
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import type { Rule } from '../support/scripted-model.ts';
import { useTempFolder } from '../support/temp-folder.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Loose = any;

const REFUNDS = '# Refunds\n\nMoney is returned within 14 days.\n\n## Abroad\n\nCustoms duty is not returned.\n';
const PARKING = '# Parking\n\nVisitors park behind the bakery, for two hours.\n';

describe('the knowledge base over HTTP', () => {
  const folder = useTempFolder('rag');
  let gateway: TestGateway | undefined;
  let vendor: ModelServer | undefined;
  let nth = 0;

  /** A fresh folder of documents. */
  const write = async (files: Readonly<Record<string, string>>): Promise<string> => {
    nth += 1;
    const documents = path.join(folder, `documents-${nth}`);
    await mkdir(documents, { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(path.join(documents, name), text);
    return documents;
  };
  const start = async (
    rag: Record<string, unknown>,
    more: Record<string, unknown> = {},
    options?: TestGatewayOptions,
  ) => {
    gateway = await startGateway({ agents: { rag: { watch: '50ms', ...rag } }, ...more }, options);
    return gateway;
  };
  const look = async (query: string, at: TestGateway | undefined = gateway) => {
    const response = (await at?.get(`/api/core/rag${query}`)) as Response;
    return { status: response.status, body: (await response.json()) as Loose };
  };
  /** The answer, once it satisfies. */
  const lookUntil = async (query: string, what: string, satisfies: (body: Loose) => boolean, at?: TestGateway) => {
    for (const giveUpAt = performance.now() + 10_000; performance.now() < giveUpAt; ) {
      const { body } = await look(query, at);
      if (satisfies(body)) return body;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`waited in vain until ${what}; the log:\n${(at ?? gateway)?.logText()}`);
  };
  const found = (body: Loose): boolean => body.data.length > 0;

  afterEach(async () => {
    await gateway?.stop();
    await vendor?.close();
    [gateway, vendor] = [undefined, undefined];
  });

  it('answers passages with what is needed to cite them', async () => {
    await start({ folder: await write({ 'refunds.md': REFUNDS, 'parking.md': PARKING }) });
    const body = await lookUntil('?q=customs+duty', 'the folder is indexed', found);
    expect(body).to.include({ object: 'list', query: 'customs duty', mode: 'words' });
    expect(body.took_ms).to.be.a('number');
    expect(body.data[0]).to.deep.equal({
      id: 'refunds.md#1',
      score: 1,
      text: 'Customs duty is not returned.',
      source: 'refunds.md',
      title: 'Refunds',
      location: { headings: ['Refunds', 'Abroad'], line: 7 },
    });
  });
});
