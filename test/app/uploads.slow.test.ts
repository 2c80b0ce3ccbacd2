import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const run = promisify(execFile);

/** Posts a form as Open WebUI and scripts do: a name and bytes, or bytes alone, without a type. */
const SCRIPT = `
import json, sys
import requests
url, key, path, field, name, latin, fields = sys.argv[1:]
content = latin.encode("latin-1")
file = (name, content) if name else content
response = requests.post(url + path, headers={"Authorization": "Bearer " + key}, files={field: file}, data=json.loads(fields))
print(json.dumps({"status": response.status_code, "text": response.text}))
`;

/** Candidates for a Python with \`requests\`: the first one may not be Debian's installation. */
const PYTHONS = ['python3', '/usr/bin/python3'];

async function findPython(): Promise<string | undefined> {
  for (const program of PYTHONS)
    if (
      await run(program, ['-c', 'import requests']).then(
        () => true,
        () => false,
      )
    )
      return program;
  if (process.env['CI']) throw new Error('CI has no Python with requests: apt-get install -y python3-requests');
  return undefined;
}

describe('uploads by Python’s requests', () => {
  let python = '';
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async function () {
    const found = await findPython();
    if (found === undefined) return this.skip();
    python = found;
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
    await gateway?.stop();
    await vendor?.close();
  });

  const line = {
    ...{ custom_id: 'a', method: 'POST', url: '/v1/chat/completions' },
    body: { model: 'openai/gpt-5.5', messages: [{ role: 'user', content: 'Hi' }] },
  };
  const sound = { content: 'RIFF\x24\0\0\0WAVEfmt '.replaceAll('\0', '\x01'), fields: { model: 'openai/whisper-1' } };
  const image = { content: 'GIF89a pixels', fields: { model: 'openai/gpt-image-1', prompt: 'A hat' } };
  const batch = { content: JSON.stringify(line), fields: { purpose: 'batch' } };
  const cases: readonly (readonly [
    path: string,
    field: string,
    name: string,
    sent: typeof sound | typeof image | typeof batch,
    arrives: string,
  ])[] = [
    [
      '/v1/audio/transcriptions',
      'file',
      'speech "1" é.wav',
      sound,
      'filename="speech_1_.wav"\r\ncontent-type: audio/wav',
    ],
    ['/v1/audio/transcriptions', 'file', '', sound, 'filename="file.wav"\r\ncontent-type: audio/wav'],
    ['/v1/audio/translations', 'file', 'speech.wav', sound, 'filename="speech.wav"\r\ncontent-type: audio/wav'],
    ['/v1/images/edits', 'image', 'cat.gif', image, 'filename="cat.gif"\r\ncontent-type: image/gif'],
    ['/v1/images/edits', 'image', '', image, 'filename="image.gif"\r\ncontent-type: image/gif'],
    ['/v1/files', 'file', 'requests.jsonl', batch, '"custom_id":"a"'],
    ['/v1/files', 'file', '', batch, '"custom_id":"a"'],
  ];
  for (const [path, field, name, { content, fields }, arrives] of cases)
    it(`G30: ${name === '' ? 'bytes alone' : name} arrive at ${path}`, async () => {
      const { url, key } = gateway;
      const { stdout } = await run(python, [
        '-c',
        SCRIPT,
        url,
        key,
        path,
        field,
        name,
        content,
        JSON.stringify(fields),
      ]);
      const { status, text } = JSON.parse(stdout) as { status: number; text: string };
      expect(status, text).to.equal(200);
      expect(vendor.requests.at(-1)?.body.toString('latin1')).to.include(arrives);
    });
});
