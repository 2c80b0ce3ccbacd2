import path from 'node:path';
import { expect } from 'chai';
import type { EmbedTexts } from '../../../../plugins/agents/rag/embed-pending.ts';
import { embedHashes, openTestIndex, type TestIndex } from '../../../support/agents/rag-index.ts';
import { useTempFolder } from '../../../support/folders.ts';

const FILES = Object.freeze({ 'a.md': 'apples are red', 'b.md': 'bananas are bent', 'c.md': 'cherries have stones' });

describe('embeddings of the knowledge base', () => {
  const folder = useTempFolder('rag-embed');
  let index: TestIndex;
  let nth = 0;
  let requests: string[];
  const embed: EmbedTexts = async (texts) => {
    requests.push(...texts);
    return texts.map(embedHashes);
  };
  const vectors = (model: string) => index.reader.vectors(model, 0, 100).length;
  beforeEach(async () => {
    nth += 1;
    requests = [];
    index = await openTestIndex(path.join(folder, String(nth)));
    index.write(FILES);
  });
  afterEach(() => index.close());

  it('are made once for every passage, with its title and headings', async () => {
    index.write({ 'd.md': '# Dates\n\n## Dried\n\nsticky' });
    await index.update({ model: 'm' }, { embed });
    await index.update({ model: 'm' }, { embed });
    expect(requests).to.have.length(4);
    expect(requests).to.include('Dates\nDried\nsticky');
    expect(vectors('m')).to.equal(4);
  });

  it('are reused for unchanged passages', async () => {
    await index.update({ model: 'm' }, { embed });
    requests = [];
    index.write({ 'b.md': 'bananas are yellow' });
    await index.update({ model: 'm' }, { embed });
    expect(requests).to.deep.equal(['b.md\nbananas are yellow']);
    expect(vectors('m')).to.equal(3);
  });

  it('are created for an index without them, and not used once they are disabled', async () => {
    await index.update();
    expect(vectors('m')).to.equal(0);
    await index.update({ model: 'm' }, { embed });
    expect(vectors('m')).to.equal(3);
    await index.update();
    expect(vectors('m')).to.equal(0);
  });

  it('of another model are recreated, and never mixed', async () => {
    await index.update({ model: 'm' }, { embed });
    await index.update({ model: 'n' }, { embed });
    expect([vectors('m'), vectors('n')]).to.deep.equal([0, 3]);
  });

  it('that cannot be created leave the word index, and are created later', async () => {
    const down: EmbedTexts = async () => {
      throw new TypeError('down');
    };
    const failure = await index.update({ model: 'm' }, { embed: down }).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(TypeError);
    expect(index.sources('bananas')).to.deep.equal(['b.md']);
    expect(index.reader.isUnembedded()).to.equal(true);
    await index.update({ model: 'm' }, { embed });
    expect(index.reader.isUnembedded()).to.equal(false);
    expect(vectors('m')).to.equal(3);
  });

  it('of a text that the model refuses are given up, and those of the others are not', async () => {
    const picky: EmbedTexts = async (texts) =>
      texts.some((text) => text.includes('bananas')) ? 'refused' : embed(texts);
    await index.update({ model: 'm' }, { embed: picky });
    expect(vectors('m')).to.equal(2);
    requests = [];
    await index.update({ model: 'm' }, { embed });
    expect(requests).to.deep.equal([]);
  });

  it('are not given up when the model refuses everything', async () => {
    const failure = await index
      .update({ model: 'm' }, { embed: async () => 'refused' })
      .catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(TypeError);
    expect(index.reader.isUnembedded()).to.equal(true);
  });
});
