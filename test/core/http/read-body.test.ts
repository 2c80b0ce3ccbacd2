import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import zlib from 'node:zlib';
import { expect } from 'chai';
import { GatewayError, isGatewayError } from '../../../contract/errors.ts';
import { measureJson } from '../../../contract/json.ts';
import { decompress } from '../../../core/http/decompress.ts';
import { discardBody } from '../../../core/http/error-answer.ts';
import { type JsonBody, parseBody, RequestAborted, RequestBody } from '../../../core/http/read-body.ts';
import { jsonTestSuite } from '../../support/corpus.ts';
import { until } from '../../support/wait.ts';

const MAX = 64 * 1024;
const MAX_MIB = 20;

describe('the body of a request', () => {
  let server: http.Server;
  let port: number;
  let outcomes: { body?: JsonBody; error?: unknown }[];

  before(async () => {
    server = http.createServer(async (req, res) => {
      try {
        const maxBytes = Number(req.headers['x-max'] ?? MAX);
        const maxValues = Number(req.headers['x-max-values'] ?? 100_000);
        outcomes.push({ body: await new RequestBody(req, { maxBytes }).json({ maxValues }) });
        res.end('ok');
      } catch (error) {
        outcomes.push({ error });
        if (!res.destroyed) res.writeHead(isGatewayError(error) ? error.status : 500).end(String(error));
        if (!(await discardBody(req, { maxBytes: 1024 * 1024, maxMs: 5000 }))) req.destroy();
      }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as net.AddressInfo);
  });

  beforeEach(() => {
    outcomes = [];
  });

  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  /** Result of the reader: the value, or the code and message of its error. */
  async function read(
    body: string | Uint8Array,
    headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
  ): Promise<{ value?: unknown; code?: string; message?: string; param?: string | undefined; body?: JsonBody }> {
    const req = http.request({ port, host: '127.0.0.1', method: 'POST', headers, agent: false });
    req.on('error', () => {});
    req.end(body);
    const [res] = (await once(req, 'response')) as [http.IncomingMessage];
    res.resume();
    await once(res, 'end');
    const outcome = outcomes.at(-1)!;
    if (outcome.body) return { value: outcome.body.value, body: outcome.body };
    if (!isGatewayError(outcome.error)) throw outcome.error;
    const { code, message, param } = outcome.error;
    return { code, message, param };
  }

  it('reaches its route as a value and as its bytes', async () => {
    const sent = '{ "a": [1, "é😀"] }\n';
    const { body } = await read(sent);
    expect(body).to.deep.include({ value: { a: [1, 'é😀'] }, empty: false });
    expect(body!.raw.toString()).to.equal(sent);
  });

  it('may be absent: its route decides whether there must be one', async () => {
    for (const headers of [
      {},
      { 'content-type': 'application/json' },
      { 'transfer-encoding': 'chunked', 'content-type': 'application/json' },
    ]) {
      expect((await read('', headers)).body).to.deep.include({ value: undefined, empty: true });
    }
  });

  it('loses its byte order mark', async () => {
    const { body } = await read('\ufeff{}');
    expect(body!.value).to.deep.equal({});
    expect(body!.raw.toString()).to.equal('{}');
  });

  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=UTF-8',
    'application/json;charset="utf-8";x=y',
  ]) {
    it(`may be of type ${type}`, async () => {
      expect(await read('{}', { 'content-type': type })).to.deep.include({ value: {} });
    });
  }

  for (const headers of [
    {},
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-type': 'application/json', 'content-encoding': 'compress' },
    { 'content-type': 'application/json', 'content-encoding': 'identity, br' },
  ]) {
    it(`is refused with unsupported_media_type for ${JSON.stringify(headers)}`, async () => {
      expect(await read('{}', headers)).to.include({ code: 'unsupported_media_type' });
    });
  }

  const JSON_TYPE = { 'content-type': 'application/json' };
  const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Uint8Array) => Buffer };
  const COMPRESSED: readonly (readonly [encoding: string, compress: (bytes: Uint8Array) => Buffer])[] = [
    ['gzip', zlib.gzipSync],
    ['X-GZIP', zlib.gzipSync],
    ['br', zlib.brotliCompressSync],
    ['deflate', zlib.deflateSync],
    ['deflate', zlib.deflateRawSync],
    ...(zstdCompressSync ? [['zstd', zstdCompressSync] as const] : []),
  ];
  for (const [encoding, compress] of COMPRESSED) {
    const headers = { ...JSON_TYPE, 'content-encoding': encoding };

    it(`G31: may be compressed as ${encoding}`, async () => {
      const text = '{"a":["é😀"]}';
      const { body, value } = await read(compress(Buffer.from(text)), headers);
      expect(value).to.deep.equal({ a: ['é😀'] });
      expect(body?.raw.toString()).to.equal(text);
    });

    it(`G31: is refused for a size over the limit inside of ${encoding}`, async () => {
      const bomb = compress(Buffer.alloc(20 * MAX, 0x20));
      expect(bomb.length).to.be.below(MAX);
      expect(await read(bomb, headers)).to.include({ code: 'request_too_large' });
    });

    it(`G31: is refused if it is cut or is not ${encoding}`, async () => {
      for (const bytes of [compress(Buffer.from('{"a":"some text"}')).subarray(0, -6), Buffer.from('{"a":1}')])
        expect(await read(bytes, headers)).to.include({ code: 'invalid_request' });
    });
  }

  if (!zstdCompressSync)
    it('G31: is refused as zstd by a Node without it, with the switch of the client', async () => {
      const { code, message } = await read('{}', { ...JSON_TYPE, 'content-encoding': 'zstd' });
      expect(code).to.equal('unsupported_media_type');
      expect(message).to.include('22.15').and.include('enable_request_compression = false');
    });

  it('G31: counts memory while it is decompressed, and stops at the first refusal', async () => {
    let grown = 0;
    const grow = (bytes: number): void => {
      grown += bytes;
      if (grown > MAX) throw new GatewayError('overloaded', 'no memory');
    };
    const bomb = zlib.gzipSync(Buffer.alloc(200 * MAX));
    const tooLarge = () => new GatewayError('request_too_large', 'too large');
    const error = await decompress(bomb, () => zlib.createGunzip(), { maxBytes: 1e9, grow, tooLarge }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).to.include({ code: 'overloaded' });
    expect(grown).to.be.below(2 * MAX + 64 * 1024);
  });

  it('is refused for a declared length over the limit, without waiting for it', async () => {
    const socket = net.connect(port, '127.0.0.1');
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${MAX + 1}\r\n\r\n`);
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    expect(bytes.toString()).to.match(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  it('is refused when it passes the limit without a declared length, naming the limit', async () => {
    const result = await read(`"${'x'.repeat(MAX)}"`, {
      'content-type': 'application/json',
      'transfer-encoding': 'chunked',
    });
    expect(result).to.include({ code: 'request_too_large' });
    expect(result.message).to.include(`${MAX} bytes`);
  });

  it('may be exactly as large as the limit', async () => {
    expect((await read(`"${'x'.repeat(MAX - 2)}"`)).body!.raw.length).to.equal(MAX);
  });

  it('is refused for more values and names than the limit, of any kind', async () => {
    const atMost = { 'content-type': 'application/json', 'x-max-values': '5' };
    expect((await read('[1, "a", {"b": null}]', atMost)).code).to.equal('request_too_large');
    expect((await read('[1, {"b": null}]', atMost)).value).to.deep.equal([1, { b: null }]);
    for (const body of ['[1,2,3,4,5]', '[{},{},{},{},{}]', '[[[[[[]]]]]]', '{"a":1,"b":"","c":[]}'])
      expect(await read(body, atMost), body).to.include({
        code: 'request_too_large',
        message: 'The body has more than 5 values and field names.',
      });
  });

  it('E28: is refused at the limit of values, however long it is', async () => {
    const bytes = Buffer.from(`[${'{},'.repeat(MAX_MIB * 349_525)}{}]`);
    const bounds = { maxDepth: 64, maxValues: 400_000 };
    expect(measureJson(bytes, bounds)).to.deep.include({ values: 400_001, exceeded: 'values' });
    expect(() => parseBody(bytes, bounds, () => expect.fail('memory is asked for'))).to.throw(
      'more than 400000 values',
    );
  });

  it('cannot be changed', async () => {
    const { value } = await read('{"a": [{"b": 1}]}');
    const { a } = value as { a: object[] };
    expect([value, a, a[0]].every((each) => Object.isFrozen(each))).to.equal(true);
  });

  it('is cut when its sender does not stop', async () => {
    const socket = net.connect(port, '127.0.0.1');
    let isCut = false;
    socket.on('error', () => {});
    socket.on('close', () => {
      isCut = true;
    });
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
    const chunk = `${(16 * 1024).toString(16)}\r\n${'x'.repeat(16 * 1024)}\r\n`;
    await until('the sender is cut', () => {
      if (!isCut) socket.write(chunk);
      return isCut;
    });
    expect(outcomes).to.have.length(1);
  });

  it('counts as aborted when the caller disconnects', async () => {
    const socket = net.connect(port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{"a"');
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.destroy();
    await until('the body is given up', () => outcomes.length > 0);
    expect(outcomes[0]!.error).to.be.instanceOf(RequestAborted);
  });

  describe('with an error', () => {
    const cases: readonly (readonly [what: string, body: string | Buffer, message: RegExp, param?: string])[] = [
      ['a comma too many', '{\n  "a": 1,\n}', /is not valid JSON: .*\(line 3, column 1\)/],
      ['single quotes', "{'a': 1}", /is not valid JSON: .*\(line 1, column 2\)/],
      ['a missing colon', '{"a" 1}', /is not valid JSON: .*\(line 1, column 6\)/],
      ['a missing comma', '[1 2]', /is not valid JSON: .*\(line 1, column 4\)/],
      ['a wrong bracket', '{"a": [1}', /is not valid JSON: .*\(line 1, column 9\)/],
      ['a word', '{"a": undefined}', /is not valid JSON: unexpected token 'u'[^"{]*$/],
      ['something after the end', '{} {}', /is not valid JSON: .*\(line 1, column 4\)/],
      ['an early end', '{"a": ', /is not valid JSON: unexpected end/],
      ['an open string', '{"a": "b', /is not valid JSON: unterminated string/],
      ['a bad escape', '{"a": "\\x"}', /is not valid JSON: bad escaped character .*\(line 1, column 9\)/],
      ['a line end in a string', '{"a": "x\ny"}', /is not valid JSON: bad control character .*\(line 1, column 9\)/],
      ['only blanks', '  \n ', /is not valid JSON: unexpected end/],
      ['nesting', '['.repeat(65) + ']'.repeat(65), /nested deeper than 64 levels/],
      ['bottomless nesting', '['.repeat(60_000), /nested deeper than 64 levels/],
      ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), /not UTF-8/],
      ['half a code point', Buffer.from([0x22, 0xc3, 0x22]), /not UTF-8/],
      ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /not UTF-8/],
      ['UTF-16', Buffer.from('{}', 'utf16le'), /is not valid JSON/],
      ['half a surrogate pair', '{"m": [{"c": "a\\ud83d"}]}', /"m\[0\]\.c" contains half a surrogate pair/, 'm[0].c'],
      ['half a surrogate pair in a name', '{"\\uDE00": 1}', /contains half a surrogate pair/],
      ['infinity', '{"temperature": 1e999}', /"temperature" is a number too large/, 'temperature'],
      ['infinity spelt out', `{"n": -${'9'.repeat(400)}}`, /"n" is a number too large/, 'n'],
      ['__proto__', '{"a": {"__proto__": {"x": 1}}}', /"a\.__proto__" is a name that is not allowed/, 'a.__proto__'],
      ['__proto__ twice', '{"__proto__": 1, "__proto__": {}}', /not allowed/, '__proto__'],
      ['__proto__ escaped', '{"\\u005f_proto__": {}}', /not allowed/, '__proto__'],
      ['constructor.prototype', '{"constructor": {"prototype": {"x": 1}}}', /not allowed/, 'constructor'],
    ];
    for (const [what, body, message, param] of cases) {
      it(`is refused as invalid_json, with the place: ${what}`, async () => {
        const result = await read(body);
        expect(result.code).to.equal('invalid_json');
        expect(result.message).to.match(message);
        expect(result.param).to.equal(param);
      });
    }
  });

  describe('without an error', () => {
    for (const [what, body] of [
      ['64 levels', '['.repeat(64) + ']'.repeat(64)],
      ['brackets in strings', JSON.stringify('[{'.repeat(200))],
      ['escaped quotes before brackets', JSON.stringify(['\\"[', '\\\\', '"[['.repeat(100)])],
      ['exponents a double can hold', '[1e300, -1E-400, 1.5e+3]'],
      ['words about constructors', '{"constructor": "x", "content": "__proto__ and constructor.prototype"}'],
      ['a name twice, of which the last one counts', '{"a": 1, "b": {"c": 1, "\\u0063": 2}, "a": 3}'],
      ['a name in several objects', '[{"a": {"a": [{"a": 1}, {"a": 2}]}}, {"a": 1}]'],
      ['names that case or a prototype would make equal', '{"Model": 1, "model": 2, "toString": 3, "valueOf": 4}'],
      ['escaped pairs', '"\\ud83d\\ude00 \\u00e9"'],
    ] as const) {
      it(`is accepted with ${what}`, async () => {
        expect((await read(body)).value).to.deep.equal(JSON.parse(body));
      });
    }
  });

  describe('of JSONTestSuite', () => {
    const cases = jsonTestSuite();
    it('is one of more than 250', () => expect(cases.length).to.be.greaterThan(250));
    for (const { name, bytes } of cases) {
      it(`has the expected result of the suite: ${name}`, async () => {
        const result = await read(bytes, { 'content-type': 'application/json', 'x-max': '1000000' });
        // The route decides about an empty body, which is invalid JSON in any case.
        if (bytes.length === 0) expect(result.body).to.include({ empty: true });
        else if (name.startsWith('y_')) expect(result.value).to.deep.equal(JSON.parse(bytes.toString()));
        else expect(result.code).to.equal('invalid_json');
      });
    }
  });
});
