import path from 'node:path';
import { expect } from 'chai';
import { GatewayError } from '../../../../contract/index.ts';
import type { Embedder } from '../../../../plugins/agents/rag/embedder.ts';
import { createIndexer, type Indexer } from '../../../../plugins/agents/rag/index.ts';
import { embedHashes, openTestIndex, type TestIndex } from '../../../support/agents/rag-index.ts';
import { useTempFolder } from '../../../support/folders.ts';
import { createSilentLog } from '../../../support/log.ts';
import { until } from '../../../support/wait.ts';

describe('the indexer of the knowledge base', () => {
  const folder = useTempFolder('rag-indexer');
  let index: TestIndex;
  let indexer: Indexer | undefined;
  let nth = 0;
  const log = createSilentLog();
  const embedder = (embedTexts: Embedder['embedTexts']): Embedder => ({
    model: 'm',
    embedTexts,
    embedQuery: async (text) => embedHashes(text),
  });
  const start = (embed: Embedder['embedTexts'], watchMs: number): void => {
    indexer = createIndexer(
      { ...index.job, model: 'm', watchMs },
      { database: index.database, reader: index.reader, embedder: embedder(embed), log },
    );
    indexer.start();
  };
  beforeEach(async () => {
    nth += 1;
    index = await openTestIndex(path.join(folder, String(nth)));
    index.write({ 'a.md': 'apples', 'b.md': 'bananas' });
  });
  afterEach(async () => {
    await indexer?.close();
    index.close();
  });

  for (const watchMs of [0, 20]) {
    it(`embeds once the model is back, with a check every ${watchMs} ms`, async () => {
      let requestCount = 0;
      start(async (texts) => {
        requestCount += 1;
        if (requestCount === 1) throw new GatewayError('provider_unavailable', 'down');
        return texts.map(embedHashes);
      }, watchMs);
      await until('words are indexed', () => index.sources('bananas').length === 1);
      await until('the passages are embedded', () => index.reader.vectors('m', 0, 9).length === 2);
      const waiting = log.lines.filter(({ message }) => message.includes('embeddings of passages are pending'));
      expect(waiting.at(-1)?.fields).to.deep.equal({ reason: 'provider_unavailable: down' });
    });
  }

  it('ends at once when it is closed while the model does not answer, and releases the lock', async () => {
    let isRequested = false;
    start(() => {
      isRequested = true;
      return new Promise(() => undefined);
    }, 20);
    await until('the model is asked', () => isRequested);
    await indexer?.close();
    expect(await index.update({ holder: 'another' })).to.include({ lost: false });
  });
});
