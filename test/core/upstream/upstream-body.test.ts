import { expect } from 'chai';
import { NOT_YET } from '../../../core/upstream/pull.ts';
import { UpstreamBody } from '../../../core/upstream/upstream-body.ts';
import { UpstreamError } from '../../../core/upstream/upstream-error.ts';

const BROKEN = new UpstreamError('it broke', { failure: 'upstream_error', phase: 'body', sent: true });
const WHOLE = 64 * 1024;

describe('the bytes of an answer', () => {
  let asked: string[];
  let body: UpstreamBody;

  beforeEach(() => {
    asked = [];
    body = new UpstreamBody({
      pause: () => void asked.push('pause'),
      resume: () => void asked.push('resume'),
      cancel: () => void asked.push('cancel'),
    });
  });

  /** What can be read now, as texts, with the error that ends it. */
  function readNow(): string[] {
    const read: string[] = [];
    try {
      for (let bytes = body.read(); bytes && bytes !== NOT_YET; bytes = body.read()) read.push(bytes.toString());
    } catch (error) {
      read.push((error as Error).message);
    }
    return read;
  }

  it('are told to a listener once, from within the call that brought them', () => {
    let told = 0;
    body.whenReadable(() => (told += 1));
    expect(readNow()).to.deep.equal([]);
    body.push(Buffer.from('a'));
    expect(told).to.equal(1);
    body.push(Buffer.from('b'));
    expect(told).to.equal(1);
    expect(readNow()).to.deep.equal(['ab']);
    expect(body.read()).to.equal(NOT_YET);
  });

  it('are told later to a listener that comes when they are there', async () => {
    let told = 0;
    body.push(Buffer.from('a'));
    body.whenReadable(() => (told += 1));
    expect(told).to.equal(0);
    await Promise.resolve();
    expect(told).to.equal(1);
  });

  const ends: readonly (readonly [string, () => void, readonly string[]])[] = [
    ['their end', () => body.end(), ['a']],
    ['an error', () => body.fail(BROKEN, false), ['a', 'it broke']],
    ['an error that drops them', () => body.fail(BROKEN, true), ['it broke']],
    ['a reader that wants no more', () => body.cancel(), []],
  ];
  for (const [what, end, expected] of ends) {
    it(`are followed by ${what}, which is told as well`, () => {
      let told = 0;
      body.push(Buffer.from('a'));
      readNow();
      body.whenReadable(() => (told += 1));
      body.push(Buffer.from('a'));
      body.whenReadable(() => (told += 1));
      end();
      expect(readNow()).to.deep.equal(expected);
      expect(body.read()).to.equal(undefined);
      expect(readNow()).to.deep.equal([]);
      expect(told).to.be.greaterThan(0);
    });
  }

  it('stop their source while too many are unread, and never while a listener reads them', () => {
    const readAll = (): void => {
      readNow();
      body.whenReadable(readAll);
    };
    body.whenReadable(readAll);
    body.push(Buffer.alloc(WHOLE + 1));
    expect(asked).to.deep.equal([]);
    body.whenReadable(() => {});
    body.push(Buffer.alloc(WHOLE));
    body.push(Buffer.alloc(1));
    expect(asked).to.deep.equal(['pause']);
    readNow();
    expect(asked).to.deep.equal(['pause', 'resume']);
  });

  it('come to an iterator as one buffer for all that one turn brought', async () => {
    const iterated = (async () => {
      const parts: string[] = [];
      for await (const part of body) parts.push(part.toString());
      return parts;
    })();
    body.push(Buffer.from('a'));
    body.push(Buffer.from('b'));
    await new Promise((resolve) => setImmediate(resolve));
    body.push(Buffer.from('c'));
    body.end();
    expect(await iterated).to.deep.equal(['ab', 'c']);
  });
});
