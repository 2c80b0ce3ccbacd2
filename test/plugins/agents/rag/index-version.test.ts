import path from 'node:path';
import { expect } from 'chai';
import { INDEX_VERSION, openIndex } from '../../../../plugins/agents/rag/database.ts';
import { hashOf } from '../../../../plugins/agents/rag/files.ts';
import { createIndexReader } from '../../../../plugins/agents/rag/index-reader.ts';
import { embedHashes, makeFormerIndex, openTestIndex } from '../../../support/agents/rag-index.ts';
import { useTempFolder } from '../../../support/folders.ts';

const TEXT = 'apples are red';

describe('an index of the knowledge base that another version made', () => {
  const folder = useTempFolder('rag-version');

  it('D30 is dropped, which is reported once', async () => {
    const data = path.join(folder, 'reported', 'data');
    await makeFormerIndex(data, 2);
    const reported: number[] = [];
    const open = () => openIndex(data, 1000, (version) => reported.push(version));
    (await open()).close();
    const database = await open();
    expect(reported).to.deep.equal([2]);
    const names = database.prepare('SELECT name FROM sqlite_master').all();
    expect(names.map(({ name }) => String(name)).filter((name) => name.startsWith('words'))).to.deep.equal([]);
    database.close();
  });

  it('D30 is made again from the folder, with the embeddings that it had', async () => {
    const where = path.join(folder, 'again');
    await makeFormerIndex(path.join(where, 'data'), 2, [
      { hash: hashOf(`m\na.md\n${TEXT}`), model: 'm', vector: embedHashes(`a.md\n${TEXT}`) },
    ]);
    const index = await openTestIndex(where);
    index.write({ 'a.md': TEXT, 'b.md': 'bananas are bent' });
    const embedded: string[] = [];
    const embed = async (texts: readonly string[]) => {
      embedded.push(...texts);
      return texts.map(embedHashes);
    };
    expect(await index.update({ model: 'm' }, { embed })).to.include({ changed: 2, passages: 2 });
    expect(embedded).to.deep.equal(['b.md\nbananas are bent']);
    expect(index.sources('apples')).to.deep.equal(['a.md']);
    expect(index.reader.vectors('m', 0, 9)).to.have.length(2);
    index.close();
  });

  for (const version of [1, INDEX_VERSION + 1])
    it(`keeps nothing when it is of version ${version}`, async () => {
      const data = path.join(folder, String(version));
      await makeFormerIndex(data, version, [{ hash: 'h', model: 'm', vector: embedHashes('x') }]);
      const database = await openIndex(data, 1000);
      expect(createIndexReader(database).files().size).to.equal(0);
      expect(database.prepare('SELECT count(*) AS n FROM vectors').get()?.['n']).to.equal(0);
      database.close();
    });

  it('is distinguished from a new file, which is not reported', async () => {
    const reported: number[] = [];
    (await openIndex(path.join(folder, 'new'), 1000, (version) => reported.push(version))).close();
    expect(reported).to.deep.equal([]);
  });
});
