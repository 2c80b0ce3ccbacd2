import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { connectTo } from '../support/clients/raw-socket.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

/** Route that accepts an upload and reports what it received. */
const UPLOADS = `
import { readFile } from 'node:fs/promises';
export default {
  name: 'uploads', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.route({
      method: 'POST', path: '/uploads', summary: 'Takes a file', auth: ['key'],
      form: { maxFileBytes: 1000, maxFiles: 2 },
      body: { type: 'object', required: ['title'], additionalProperties: false, properties: { title: { type: 'string', maxLength: 20 } } },
      responses: { 200: 'What came.' },
      async handler(ctx) {
        const files = await Promise.all(ctx.state.files.map(async (file) => ({ ...file, text: await readFile(file.path, 'utf8') })));
        ctx.body = { fields: ctx.state.body, files };
      },
    });
  },
};`;

describe('a route with a form', () => {
  /** Temporary folder of this file alone: tests that run concurrently upload files too. */
  const folder = useTempFolder('uploads');
  const { TMPDIR } = process.env;
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ plugins: ['./uploads.mjs'] }, { files: { 'uploads.mjs': UPLOADS } });
    process.env['TMPDIR'] = folder;
  });
  after(async () => {
    await gateway.stop();
    if (TMPDIR === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = TMPDIR;
  });

  const send = (form: FormData) =>
    fetch(`${gateway.url}/uploads`, { method: 'POST', headers: { 'x-api-key': gateway.key }, body: form });
  const codeOf = async (response: Response) =>
    ((await response.json()) as { error: { code: string; param: string | null } }).error;
  const uploads = () => readdirSync(folder);

  it('receives its fields and files, and the files are deleted afterwards', async () => {
    const form = new FormData();
    form.set('title', 'notes');
    form.set('file', new Blob(['hello'], { type: 'text/plain' }), '../../etc/notes.txt');
    const response = await send(form);
    const body = (await response.json()) as {
      fields: object;
      files: { name: string; text: string; contentType: string; bytes: number; path: string }[];
    };
    expect(response.status, JSON.stringify(body)).to.equal(200);
    expect(body.fields).to.deep.equal({ title: 'notes' });
    expect(body.files[0]).to.include({ text: 'hello', contentType: 'text/plain', bytes: 5 });
    expect(body.files[0]?.path).to.match(new RegExp(`^${folder}/tollgate-upload-[^/]+/[^/]+$`));
    expect(uploads()).to.deep.equal([]);
  });

  it('refuses an oversized file, and stores nothing of it', async () => {
    const form = new FormData();
    form.set('title', 'big');
    form.set('file', new Blob(['x'.repeat(5000)]), 'big.txt');
    const response = await send(form);
    expect(response.status).to.equal(413);
    expect(await codeOf(response)).to.include({ code: 'request_too_large' });
    expect(uploads()).to.deep.equal([]);
  });

  it('checks its fields against the schema', async () => {
    const form = new FormData();
    form.set('title', 'a title that is far too long for it');
    const response = await send(form);
    expect(response.status).to.equal(400);
    expect(await codeOf(response)).to.include({ param: 'title' });
  });

  it('sends nothing to a caller who disconnects in the middle of the form, and stores nothing of it', async () => {
    const socket = await connectTo(gateway.url);
    const part = `--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello`;
    socket.write(
      `POST /uploads HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.key}\r\nx-request-id: hang-up-2\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 900\r\n\r\n${part}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    const lines = () => gateway.logs.filter((line) => line['request_id'] === 'hang-up-2');
    await until('the request is logged', () => lines().length > 0 && uploads().length === 0);
    expect(lines()[0]).to.include({ msg: 'request', status: 499 });
    expect(lines()[0]).not.to.have.property('error');
    expect(gateway.logText()).not.to.include('internal error');
  });

  it('refuses 900 files by their count, and keeps none of them (G62)', async () => {
    const form = new FormData();
    form.set('title', 'many');
    for (let at = 0; at < 900; at += 1) form.append('file', new Blob(['x']), 'a.txt');
    const response = await send(form);
    expect(response.status).to.equal(413);
    const { error } = (await response.json()) as { readonly error: { readonly message: string } };
    expect(error.message).to.include('too many parts: at most 2 file(s) and 100 fields');
    expect(uploads()).to.deep.equal([]);
  });

  it('receives a file of lines that begin like a boundary, in turns (G62)', async () => {
    const form = new FormData();
    form.set('title', 'lines');
    const text = '\r\n-'.repeat(300);
    form.set('file', new Blob([text]), 'lines.txt');
    const body = (await (await send(form)).json()) as { readonly files: readonly { readonly text: string }[] };
    expect(body.files[0]?.text).to.equal(text);
  });

  it('accepts no JSON, and is a form in the OpenAPI document', async () => {
    expect((await gateway.post('/uploads', { title: 'x' })).status).to.equal(415);
    const document = (await (await gateway.get('/openapi.json')).json()) as {
      paths: Record<string, { post: { requestBody: { content: object } } }>;
    };
    expect(Object.keys(document.paths['/uploads']!.post.requestBody.content)).to.deep.equal(['multipart/form-data']);
  });
});
