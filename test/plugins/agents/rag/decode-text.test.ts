import { expect } from 'chai';
import { decodeText, parseFile } from '../../../../plugins/agents/rag/parse/index.ts';

const TEXT = 'Die Zollgebühr für Käse beträgt 5 Euro. Où est la forêt ? ¿Dónde está?';

const swapped = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le').swap16();

describe('the encodings of documents', () => {
  const KNOWN: readonly (readonly [name: string, bytes: Buffer])[] = [
    ['UTF-8', Buffer.from(TEXT)],
    ['UTF-8 with its mark', Buffer.from(`\ufeff${TEXT}`)],
    ['UTF-16, little end first', Buffer.from(`\ufeff${TEXT}`, 'utf16le')],
    ['UTF-16, big end first', swapped(TEXT)],
    ['Latin-1', Buffer.from(TEXT, 'latin1')],
  ];
  for (const [name, bytes] of KNOWN)
    it(`D30 ${name} is read`, () => {
      expect(decodeText(bytes, false)).to.equal(TEXT);
    });

  it('D30 Windows-1252 has its dashes and quotes', () => {
    const bytes = Buffer.from('<a price> - ?5', 'latin1').map(
      (byte) => ({ 60: 0x93, 62: 0x94, 45: 0x96, 63: 0x80 })[byte] ?? byte,
    );
    expect(decodeText(Buffer.from(bytes), false)).to.equal('“a price” – €5');
  });

  it('D30 an HTML page is read in its declared encoding', async () => {
    const page = '<html><head><meta charset="iso-8859-2"></head><body><p>?</p></body></html>';
    const bytes = Buffer.from(page, 'latin1');
    bytes[page.indexOf('?')] = 0xb3;
    const { sections } = await parseFile('page.html', bytes);
    expect(sections.map(({ text }) => text)).to.deep.equal(['ł']);
  });

  it('D30 an unknown encoding, or bytes that are not text, are refused with the reason', () => {
    const page = Buffer.concat([Buffer.from('<meta charset=x-missing>'), Buffer.from([0xe9])]);
    expect(() => decodeText(page, true)).to.throw('not text in x-missing');
    expect(() => decodeText(Buffer.from([0x61, 0xe9, 0x00]), false)).to.throw('not text');
  });
});
