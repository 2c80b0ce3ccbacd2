import path from 'node:path';
import { expect } from 'chai';
import { startWorker } from '../../../../plugins/agents/rag/folder-check.ts';
import { embedHashes, openTestIndex, type TestIndex } from '../../../support/agents/rag-index.ts';
import { useTempFolder } from '../../../support/folders.ts';

describe('the worker that updates the index', () => {
  const folder = useTempFolder('rag-process');
  let index: TestIndex;
  let nth = 0;
  const events = { embed: async (texts: readonly string[]) => texts.map(embedHashes), onFile() {}, onFailed() {} };
  beforeEach(async () => {
    nth += 1;
    index = await openTestIndex(path.join(folder, String(nth)));
  });
  afterEach(() => index.close());

  it('indexes words and embeddings', async () => {
    index.write({ 'a.md': 'apples', 'b.md': 'bananas' });
    const outcome = await startWorker({ ...index.job, model: 'm' }, events).outcome;
    expect(outcome).to.deep.equal({ result: { files: 2, changed: 2, passages: 2, lost: false } });
    expect(index.sources('bananas')).to.deep.equal(['b.md']);
    expect(index.reader.vectors('m', 0, 9)).to.have.length(2);
  });

  it('reports why it stopped, when the model is unavailable', async () => {
    index.write({ 'a.md': 'apples' });
    const embed = async () => Promise.reject(new Error('down'));
    expect(await startWorker({ ...index.job, model: 'm' }, { ...events, embed }).outcome).to.have.property('stopped');
    expect(index.sources('apples')).to.deep.equal(['a.md']);
  });

  it('is ended by a file that takes too long, which is named', async () => {
    index.write({ 'slow.html': '<b>'.repeat(600_000) });
    const outcome = await startWorker(index.job, events, 1).outcome;
    expect(outcome).to.include({ source: 'slow.html', error: 'reading it took more than 0.001 s' });
    const stamp = 'stamp' in outcome ? outcome.stamp : '';
    const refused = [{ source: 'slow.html', stamp, reason: 'it took too long' }];
    const again = index.update({ holder: index.job.holder, refused });
    expect(await again).to.include({ lost: false });
    expect(index.errors()).to.deep.equal({ 'slow.html': 'it took too long' });
  });

  it('leaves a consistent index when it is killed', async () => {
    index.write(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${at}.md`, `number${at}`])));
    const worker = startWorker(index.job, {
      ...events,
      onFile: (_source, done) => void (done === 20 && worker.kill()),
    });
    expect(await worker.outcome).to.have.property('stopped');
    expect(await index.update()).to.include({ passages: 50, lost: false });
  });
});
