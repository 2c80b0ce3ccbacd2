import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createIndexLock, LOCK_MS, LockLost } from '../../../../plugins/agents/rag/index-lock.ts';
import { makePdf, openTestIndex, type TestIndex } from '../../../support/agents/rag-index.ts';
import { corpusJson } from '../../../support/corpus.ts';
import { useTempFolder } from '../../../support/folders.ts';

describe('an update of the index of the knowledge base', () => {
  const folder = useTempFolder('rag-update');
  let index: TestIndex;
  let nth = 0;
  beforeEach(async () => {
    nth += 1;
    index = await openTestIndex(path.join(folder, String(nth)));
  });
  afterEach(() => index.close());

  it('reads every format', async () => {
    index.write({
      'a.md': '# Apples\n\nred and round',
      'b.txt': 'Bananas are bent.',
      'c.html': '<title>Cherries</title><h1>Stones</h1><p>spit them out</p>',
      'd.json': '[{"title":"Dates","text":"sticky and sweet"}]',
      'e.jsonl': '{"text":"elderberries are black"}\n{"text":"more of them"}\n',
      'f.csv': 'fruit;colour\nfig;"purple, mostly"\n',
      'g.pdf': makePdf('Grapes', ['nothing here', 'wine is made of them']),
      'h.docx': 'not read',
    });
    expect(await index.update()).to.deep.equal({ files: 7, changed: 7, passages: 9, lost: false });
    expect(index.errors()).to.deep.equal({});
    const { first } = index;
    expect(first('round')).to.include({ id: 'a.md#0', title: 'Apples' });
    expect(first('bent')).to.include({ source: 'b.txt', title: 'b.txt' });
    expect(first('spit')).to.deep.include({ title: 'Cherries', location: { headings: ['Stones'] } });
    expect(first('sticky')).to.include({ title: 'Dates' });
    expect(first('elderberries')?.location).to.deep.equal({ row: 1 });
    expect(first('purple')?.text).to.equal('fruit: fig\ncolour: purple, mostly');
    expect(first('wine')).to.deep.include({ title: 'Grapes', location: { page: 2 }, text: 'wine is made of them' });
  });

  it('does nothing when nothing changed', async () => {
    index.write({ 'a.md': 'one', 'b.md': 'two' });
    await index.update();
    const read: string[] = [];
    const onFile = async ({ source }: { source: string }) => void read.push(source);
    expect(await index.update({}, { onFile })).to.include({ changed: 0 });
    expect(read).to.deep.equal([]);
  });

  it('reads only changed files', async () => {
    index.write({ 'a.md': 'one', 'b.md': 'two' });
    await index.update();
    index.write({ 'b.md': 'three' });
    const read: string[] = [];
    await index.update({}, { onFile: async ({ source }) => void read.push(source) });
    expect(read).to.deep.equal(['b.md']);
    expect([index.sources('two'), index.sources('three')]).to.deep.equal([[], ['b.md']]);
  });

  it('keeps the passages of a file that was only touched', async () => {
    index.write({ 'a.md': 'one' });
    await index.update();
    const revision = index.reader.revision();
    utimesSync(path.join(index.documents, 'a.md'), 1, 1);
    expect(await index.update()).to.include({ changed: 0 });
    expect(index.reader.revision()).to.equal(revision);
  });

  it('removes deleted files', async () => {
    index.write({ 'a.md': 'one', 'sub/b.md': 'two' });
    await index.update();
    rmSync(path.join(index.documents, 'sub'), { recursive: true });
    expect(await index.update()).to.include({ changed: 1, passages: 1 });
    expect(index.sources('two')).to.deep.equal([]);
  });

  const words = (count: number) => Array.from({ length: count }, (_, at) => `word${at}`).join(' ');

  it('reads everything again when chunkWords changed', async () => {
    index.write({ 'a.txt': words(400) });
    expect(await index.update()).to.include({ passages: 2 });
    expect(await index.update({ chunkWords: 50 })).to.include({ changed: 1, passages: 10 });
  });

  it('reads everything again when the folder is another one', async () => {
    index.write({ 'a.md': 'one' });
    await index.update();
    const other = path.join(folder, `${nth}-other`);
    mkdirSync(other);
    writeFileSync(path.join(other, 'a.md'), 'two');
    await index.update({ folder: other });
    expect([index.sources('one'), index.sources('two')]).to.deep.equal([[], ['a.md']]);
  });

  const hostile: readonly (readonly [name: string, content: string | Uint8Array, error: RegExp])[] = [
    ['broken.pdf', '%PDF-1.7\n1 0 obj\n<< /Type', /^not a readable PDF/],
    ['no.pdf', 'plain text', /^not a readable PDF/],
    ['empty.pdf', '', /^not a readable PDF/],
    ['scan.pdf', makePdf('Scan', ['']), /^contains no text$/],
    ['binary.txt', Uint8Array.from({ length: 2000 }, (_, at) => at % 256), /^not text/],
    ['nul.md', 'a\u0000b', /^not text$/],
    ['high.txt', Uint8Array.from({ length: 200 }, (_, at) => 0xa0 + (at % 90)), /^not text in UTF-8, UTF-16/],
    ['half.txt', Uint8Array.from([0xff, 0xfe, 0x61]), /^not text in utf-16le$/],
    ['empty.md', '', /^contains no text$/],
    ['broken.json', '{"a":', /^the file is not JSON$/],
    ['broken.jsonl', '{"a":1}\n{\n', /^line 2 is not JSON$/],
    ['deep.json', '['.repeat(300_000) + ']'.repeat(300_000), /^(?:contains no text|the file is not JSON)$/],
    ['quote.csv', 'a,b\n"x,y\n', /^not a table/],
  ];
  for (const [name, content, error] of hostile) {
    it(`skips ${name} with a reason, and does not read it again`, async () => {
      index.write({ [name]: content, 'good.md': 'still found' });
      await index.update();
      expect(index.errors()[name]).to.match(error);
      expect(index.sources('still found')).to.deep.equal(['good.md']);
      const read: string[] = [];
      await index.update({}, { onFile: async ({ source }) => void read.push(source) });
      expect(read).to.deep.equal([]);
    });
  }

  it('reads deep HTML, long lines and text without spaces', async () => {
    index.write({
      'deep.html': `${'<div>'.repeat(100_000)}lost`,
      'spaces.md': `# ${' '.repeat(200_000)}x\n\ntext`,
      'blob.txt': `${'a'.repeat(500_000)}`,
      'hashes.md': `${'#'.repeat(200_000)}\n\nafter the hashes`,
    });
    await index.update();
    expect(index.sources('after the hashes')).to.include('hashes.md');
    expect(index.first('text')?.text.length).to.be.below(250_000);
    expect(index.reader.count('blob.txt')).to.be.above(10);
  });

  it('passes over links, pipes, hidden files and files that are too large', async function () {
    if (process.platform === 'win32') this.skip();
    index.write({ '.hidden.md': 'secret', '.git/x.md': 'secret', 'huge.txt': 'x' });
    const at = (name: string) => path.join(index.documents, name);
    truncateSync(at('huge.txt'), 1_000_000_000);
    symlinkSync('/etc/passwd', at('link.txt'));
    symlinkSync('/', at('root'));
    execFileSync('mkfifo', [at('pipe.md')]);
    expect(await index.update()).to.include({ files: 0, passages: 0 });
  });

  it('continues if a file is unreadable, and removes its passages', async function () {
    if (process.getuid?.() === 0) this.skip();
    index.write({ 'a.md': 'one', 'b.md': 'two' });
    await index.update();
    chmodSync(path.join(index.documents, 'a.md'), 0);
    await index.update();
    expect(index.errors()['a.md']).to.match(/EACCES/);
    expect(index.sources('one two')).to.deep.equal(['b.md']);
  });

  it('leaves a file that is being written for the next look', async () => {
    index.write({ 'a.md': 'one' });
    const failed: string[] = [];
    const onFile = async () => index.write({ 'a.md': 'one and more' });
    await index.update({}, { onFile, onFailed: (source) => void failed.push(source) });
    expect(failed).to.deep.equal(['a.md']);
    await index.update();
    expect(index.sources('more')).to.deep.equal(['a.md']);
  });

  it('does not wait for a pipe that takes the place of a file', async function () {
    if (process.platform === 'win32') this.skip();
    index.write({ 'a.md': 'one' });
    const onFile = async ({ path: file }: { path: string }) => {
      rmSync(file);
      execFileSync('mkfifo', [file]);
    };
    expect(await index.update({}, { onFile })).to.include({ passages: 0 });
  });

  it('respects maxChunks, and indexes the rest once there is room', async () => {
    index.write({ 'a.txt': words(400), 'b.txt': words(400) });
    await index.update({ maxChunks: 3 });
    expect(index.errors()).to.deep.equal({ 'b.txt': 'the index is full: limit of 3 passages' });
    index.write({ 'a.txt': `${words(400)} more` });
    await index.update({ maxChunks: 3 });
    expect(index.reader.count('a.txt'), 'a file does not count against itself').to.equal(2);
    rmSync(path.join(index.documents, 'a.txt'));
    await index.update({ maxChunks: 3 });
    expect(index.errors()).to.deep.equal({});
  });

  it('does not read a file again that ended an earlier worker', async () => {
    index.write({ 'a.md': 'one', 'bomb.md': 'two' });
    let stamp = '';
    const onFile = async (file: { readonly source: string; readonly stamp: string }) => {
      if (file.source === 'bomb.md') stamp = file.stamp;
    };
    await index.update({}, { onFile });
    await index.update({ chunkWords: 60, refused: [{ source: 'bomb.md', stamp, reason: 'it was too much' }] });
    expect(index.errors()).to.deep.equal({ 'bomb.md': 'it was too much' });
  });

  it('accepts all kinds of file names', async () => {
    const { cases } = corpusJson('gateway-cases/names.json') as { readonly cases: readonly string[] };
    const names = cases.filter((name) => !name.includes('/') && !name.includes('\u0000'));
    index.write(Object.fromEntries(names.map((name, at) => [`x${name}.md`, `content number${at}`])));
    await index.update();
    for (const [at, name] of names.entries()) expect(index.sources(`number${at}`)[0]).to.equal(`x${name}.md`);
  });

  it('continues with a file whose name is not text', async function () {
    if (process.platform !== 'linux') this.skip();
    index.write({ 'a.md': 'one' });
    writeFileSync(
      Buffer.concat([Buffer.from(`${index.documents}/`), Buffer.from([0xff, 0xfe]), Buffer.from('.md')]),
      'x',
    );
    expect(await index.update()).to.include({ files: 1 });
  });

  it('does not touch the index while another process has the lock', async () => {
    index.write({ 'a.md': 'one' });
    const other = createIndexLock(index.database, 'other');
    expect(other.acquire(Date.now())).to.equal(true);
    expect(await index.update()).to.include({ lost: true, passages: 0 });
    other.release();
    expect(await index.update()).to.include({ lost: false, passages: 1 });
  });

  it('writes nothing once another process took the lock', async () => {
    index.write({ 'a.md': 'one', 'b.md': 'two' });
    const other = createIndexLock(index.database, 'other');
    const onFile = async ({ source }: { source: string }) => {
      if (source === 'b.md') expect(other.acquire(Date.now() + LOCK_MS + 1)).to.equal(true);
    };
    expect(await index.update({}, { onFile })).to.include({ lost: true, passages: 1 });
    expect(() => createIndexLock(index.database, 'third').write(() => undefined)).to.throw(LockLost);
  });
});
