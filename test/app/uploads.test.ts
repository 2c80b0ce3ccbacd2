import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

/** Forms that clients send to each route: the fields, the name of the file's field, and the file. */
interface Upload {
  readonly fields: Readonly<Record<string, string>>;
  readonly field: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

const SPEECH = {
  ...{ field: 'file', name: 'speech.webm', type: 'audio/webm', bytes: Buffer.from('\x1a\x45\xdf\xa3 sound', 'latin1') },
};
const IMAGE = {
  ...{ field: 'image', name: 'cat.png', type: 'image/png', bytes: Buffer.from('\x89PNG\r\n\x1a\n pixels', 'latin1') },
};
const LINE = {
  custom_id: 'a',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'openai/gpt-5.5', messages: [{ role: 'user', content: 'Hi' }] },
};
const REQUESTS = {
  ...{
    field: 'file',
    name: 'requests.jsonl',
    type: 'application/jsonl',
    bytes: Buffer.from(`${JSON.stringify(LINE)}\n`),
  },
};

/** Keyed by route; `:provider` is `openai`. */
const UPLOADS: Readonly<Record<string, Upload>> = {
  '/v1/audio/transcriptions': { ...SPEECH, fields: { model: 'openai/whisper-1' } },
  '/v1/audio/translations': { ...SPEECH, fields: { model: 'openai/whisper-1' } },
  '/v1/images/edits': { ...IMAGE, fields: { model: 'openai/gpt-image-1', prompt: 'A hat' } },
  '/v1/files': { ...REQUESTS, fields: { purpose: 'batch' } },
  '/api/core/openai/audio/transcriptions': { ...SPEECH, fields: { model: 'whisper-1' } },
  '/api/core/openai/audio/translations': { ...SPEECH, fields: { model: 'whisper-1' } },
  '/api/core/openai/images/edits': { ...IMAGE, fields: { model: 'gpt-image-1', prompt: 'A hat' } },
};

type Recorded = (upload: Upload) => Buffer;

const BOUNDARY = 'f6efde81533d9e6d88cb4c0a02a79bd5';
const DISPOSITION = 'Content-Disposition: form-data; name=';
const fieldPart = (name: string, value: string) => `--${BOUNDARY}\r\n${DISPOSITION}"${name}"\r\n\r\n${value}\r\n`;
const form = (fields: string, head: string, bytes: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(`${fields}--${BOUNDARY}\r\n${head}\r\n\r\n`),
    bytes,
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ]);
const fieldsOf = ({ fields }: Upload) =>
  Object.entries(fields)
    .map(([name, value]) => fieldPart(name, value))
    .join('');

/** Forms of clients, byte for byte except the boundary. `name` is the name that arrives if it is not the file's own. */
const CLIENTS: Readonly<Record<string, { readonly record: Recorded; readonly name?: (upload: Upload) => string }>> = {
  // requests 2.34 with urllib3 2: `requests.post(files={"file": (filename, open(path, "rb"))}, data=…)`, as in Open
  // WebUI's backend/open_webui/routers/audio.py.
  'Open WebUI': {
    record: (upload) =>
      form(fieldsOf(upload), `${DISPOSITION}"${upload.field}"; filename="${upload.name}"`, upload.bytes),
  },
  'requests with bytes alone': {
    record: (upload) =>
      form(fieldsOf(upload), `${DISPOSITION}"${upload.field}"; filename="${upload.field}"`, upload.bytes),
    name: ({ field, name, type }) => (type === 'application/jsonl' ? `${field}.txt` : `${field}.${name.split('.')[1]}`),
  },
  // httpx 0.23 to 0.28 through openai-python's `files=`: an open file whose type mimetypes guesses.
  'openai for Python with a file': {
    record: (upload) => {
      const guessed = { webm: 'video/webm', png: 'image/png', jsonl: 'application/octet-stream' };
      const type = guessed[upload.name.split('.')[1] as keyof typeof guessed];
      const head = `${DISPOSITION}"${upload.field}"; filename="${upload.name}"\r\nContent-Type: ${type}`;
      return form(fieldsOf(upload), head, upload.bytes);
    },
  },
  'openai for Python with bytes': {
    record: (upload) => {
      const head = `${DISPOSITION}"${upload.field}"; filename="upload"\r\nContent-Type: application/octet-stream`;
      return form(fieldsOf(upload), head, upload.bytes);
    },
    name: ({ name, type }) => (type === 'application/jsonl' ? 'upload.txt' : `upload.${name.split('.')[1]}`),
  },
  // https://xhr.spec.whatwg.org/#dom-formdata-append: a Blob without a name is called "blob".
  'a browser with a blob': {
    record: (upload) => {
      const head = `${DISPOSITION}"${upload.field}"; filename="blob"\r\nContent-Type: ${upload.type}`;
      return form(fieldsOf(upload), head, upload.bytes);
    },
    name: ({ name }) => `blob.${name.split('.')[1]}`,
  },
  // .NET's MultipartFormDataContent sets a type for each field, quotes no name and writes the file's name twice.
  '.NET': {
    record: (upload) => {
      const fields = Object.entries(upload.fields)
        .map(([name, value]) => {
          const head = `Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=${name}`;
          return `--${BOUNDARY}\r\n${head}\r\n\r\n${value}\r\n`;
        })
        .join('');
      const { field, name, bytes } = upload;
      return form(
        fields,
        `Content-Disposition: form-data; name=${field}; filename=${name}; filename*=utf-8''${name}`,
        bytes,
      );
    },
  },
  'a client that writes `filename*` alone': {
    record: (upload) =>
      form(fieldsOf(upload), `${DISPOSITION}"${upload.field}"; filename*=UTF-8''${upload.name}`, upload.bytes),
  },
};

describe('uploads of real clients', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream((wire) => {
      const { path } = wire.request;
      if (path.includes('/images/')) return wire.send(respondWith(200, { created: 1, data: [{ b64_json: 'AAAA' }] }));
      if (path.includes('/files')) return wire.send(respondWith(200, { id: 'file-1', object: 'file' }));
      return wire.send(respondWith(200, { text: 'Hello.', duration: 1 }));
    });
    gateway = await startGateway({
      providers: { openai: { apiKey: 'k', baseUrl: `${vendor.url}/v1`, models: ['*'] } },
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const send = async (path: string, body: Buffer) => {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      body: new Uint8Array(body),
    });
    return { status: response.status, text: await response.text() };
  };
  /** File that the vendor received. */
  const arrived = async (field: string) => {
    const { body = Buffer.alloc(0), headers } = vendor.requests.at(-1) ?? {};
    const type = String(headers?.['content-type']);
    const sent = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
    const file = sent.get(field) as File;
    return { name: file.name, type: file.type, bytes: Buffer.from(await file.arrayBuffer()) };
  };

  it('G30: the table has every route with a form', async () => {
    const { paths } = (await (await gateway.get('/openapi.json')).json()) as {
      paths: Record<string, { post?: { requestBody?: { content: object } } }>;
    };
    const routes = Object.entries(paths)
      .filter(([, { post }]) => 'multipart/form-data' in (post?.requestBody?.content ?? {}))
      .map(([path]) => path.replace('{provider}', 'openai'));
    expect(routes).to.have.members(Object.keys(UPLOADS));
  });

  for (const [client, { record, name }] of Object.entries(CLIENTS))
    for (const [path, upload] of Object.entries(UPLOADS))
      it(`G30: a file of ${client} arrives at ${path}`, async () => {
        const { status, text } = await send(path, record(upload));
        expect(status, text).to.equal(200);
        const expected = name?.(upload) ?? upload.name;
        if (path === '/v1/files') {
          expect(JSON.parse(text)).to.include({ filename: expected, purpose: 'batch', bytes: upload.bytes.length });
          expect(String((await arrived('file')).bytes)).to.include('"custom_id":"a"');
          return;
        }
        const file = await arrived(upload.field);
        expect({ ...file, type: file.type.replace(/^video\//, 'audio/') }).to.deep.equal({
          name: expected,
          type: upload.type,
          bytes: upload.bytes,
        });
      });

  const upload = UPLOADS['/v1/audio/transcriptions'] as Upload;

  it('G30: a large file without a type arrives complete', async () => {
    const bytes = Buffer.concat([SPEECH.bytes, Buffer.alloc(2_000_000, 'abc')]);
    const { record } = CLIENTS['Open WebUI'] as { record: Recorded };
    const { status, text } = await send('/v1/audio/transcriptions', record({ ...upload, bytes }));
    expect(status, text).to.equal(200);
    expect((await arrived('file')).bytes.equals(bytes)).to.equal(true);
  });

  it('G30: a part whose field is called `filename=` without a file name is a field', async () => {
    const fields = `${fieldsOf(upload)}${fieldPart('x; filename=y', 'text')}`;
    const body = form(fields, `${DISPOSITION}"file"; filename="a.wav"`, upload.bytes);
    const { status, text } = await send('/v1/audio/transcriptions', body);
    expect(status, text).to.equal(200);
  });

  it('G30: a form without a file, or with an empty one, is refused', async () => {
    const none = Buffer.from(`${fieldsOf(upload)}--${BOUNDARY}--\r\n`);
    expect((await send('/v1/audio/transcriptions', none)).text).to.include('The form must have a non-empty file');
    const empty = form(fieldsOf(upload), `${DISPOSITION}"file"; filename="a.wav"`, Buffer.alloc(0));
    expect(await send('/v1/audio/transcriptions', empty)).to.have.property('status', 400);
  });
});
