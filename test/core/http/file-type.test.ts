import { expect } from 'chai';
import { isSpecificType, typeOfBytes, typeOfName, withExtension } from '../../../core/http/file-type.ts';

const latin = (text: string) => Buffer.from(text, 'latin1');

describe('the media type of an uploaded file', () => {
  it('G30: is derived from the extension of the name, whatever its case', () => {
    expect(typeOfName('speech.WEBM')).to.equal('audio/webm');
    expect(typeOfName('a.b.m4a')).to.equal('audio/mp4');
    for (const name of ['blob', '', 'a.unknown', 'x.constructor', '.'])
      expect(typeOfName(name), name).to.equal(undefined);
  });

  const formats: readonly (readonly [type: string | undefined, bytes: Buffer])[] = [
    ['audio/wav', latin('RIFF\x24\0\0\0WAVEfmt ')],
    ['image/webp', latin('RIFF\x24\0\0\0WEBPVP8 ')],
    ['audio/mpeg', latin('ID3\x04\0')],
    ['audio/mpeg', latin('\xff\xfb\x90\x64')],
    ['audio/aac', latin('\xff\xf1\x50\x80')],
    ['audio/ogg', latin('OggS\0\x02')],
    ['audio/flac', latin('fLaC\0\0\0\x22')],
    ['audio/webm', latin('\x1a\x45\xdf\xa3\x9f')],
    ['audio/mp4', latin('\0\0\0\x20ftypM4A \0')],
    ['video/mp4', latin('\0\0\0\x20ftypisom\0')],
    ['image/avif', latin('\0\0\0\x20ftypavif\0')],
    ['image/heic', latin('\0\0\0\x20ftypheic\0')],
    ['image/png', latin('\x89PNG\r\n\x1a\n\0')],
    ['image/jpeg', latin('\xff\xd8\xff\xe0')],
    ['image/gif', latin('GIF89a')],
    ['application/pdf', latin('%PDF-1.7\n%\xe2\xe3')],
    ['text/plain', Buffer.from('Grüße\n'.repeat(200))],
    ['text/plain', Buffer.from(`${'a'.repeat(511)}é`)],
    [undefined, latin('Gr\xfc\xdfe')],
    [undefined, latin('a\0b')],
    [undefined, Buffer.alloc(0)],
  ];
  for (const [type, bytes] of formats)
    it(`G30: ${bytes.toString('latin1', 0, 12).replace(/[^\w %-]/g, '.')} is ${type ?? 'unknown'} by its first bytes`, () => {
      expect(typeOfBytes(bytes)).to.equal(type);
    });

  it('G30: is not octet-stream', () => {
    for (const type of [null, undefined, '', ' ', 'application/octet-stream', 'binary/octet-stream; x=1'])
      expect(isSpecificType(type), String(type)).to.equal(false);
    expect(isSpecificType('audio/wav')).to.equal(true);
  });

  it('G30: adds an extension to a name without one', () => {
    expect(withExtension('blob', 'audio/webm;codecs=opus')).to.equal('blob.webm');
    expect(withExtension('', 'image/png')).to.equal('file.png');
    expect(withExtension('a.b', 'image/png')).to.equal('a.b');
    expect(withExtension('blob', 'application/octet-stream')).to.equal('blob');
    expect(withExtension('upload', 'audio/mpeg')).to.equal('upload.mp3');
    expect(withExtension('upload', 'audio/ogg')).to.equal('upload.ogg');
  });
});
