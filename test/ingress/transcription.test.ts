import { expect } from 'chai';
import type OpenAI from 'openai';
import { toFile } from 'openai';
import { transcriptionCodec } from '../../plugins/formats/openai-operations.ts';
import transcription from '../../plugins/operations/transcription.ts';
import { testOperation } from '../conformance/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  respondWith,
  type Script,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** https://platform.openai.com/docs/api-reference/audio/verbose-json-object, shortened. */
const VERBOSE = {
  task: 'transcribe',
  language: 'english',
  duration: 8.47,
  text: 'The beach was a popular spot. People were swimming.',
  segments: [
    { id: 0, start: 0, end: 3.32, text: ' The beach was a popular spot.', tokens: [50364], avg_logprob: -0.28 },
    { id: 1, start: 3.32, end: 3725.5, text: ' People were swimming.' },
  ],
  usage: { type: 'duration', seconds: 9 },
};
/** https://platform.openai.com/docs/api-reference/audio/json-object */
const TOKENS = {
  text: 'Imagine the wildest idea.',
  usage: {
    ...{ type: 'tokens', input_tokens: 14, output_tokens: 45, total_tokens: 59 },
    input_token_details: { text_tokens: 0, audio_tokens: 14 },
  },
};
/** Any existing file. */
const FILE = { field: 'file', name: 'a.mp3', contentType: 'audio/mpeg', bytes: 4000, path: import.meta.filename };
const EVENTS = [
  { type: 'transcript.text.delta', delta: 'Imagine ' },
  { type: 'transcript.text.delta', delta: 'it.' },
  { type: 'transcript.text.done', text: 'Imagine it.', usage: TOKENS.usage },
];

testOperation({
  plugin: transcription,
  offer: { codec: transcriptionCodec({}) },
  samples: [
    {
      request: { model: 'm', task: 'transcribe', file: FILE },
      vendor: TOKENS,
      response: { json: { ...TOKENS, model: 'm', language: null } },
      units: { prompt_tokens: 14, completion_tokens: 45 },
    },
    {
      request: { model: 'm', task: 'translate', file: FILE, response_format: 'text' },
      vendor: VERBOSE,
      response: { text: `${VERBOSE.text}\n` },
    },
  ],
});

describe('POST /v1/audio/transcriptions and translations', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let openai: OpenAI;
  let script: Script | Uint8Array = respondWith(200, VERBOSE);

  before(async () => {
    vendor = await startScriptedUpstream((wire) => (typeof script === 'function' ? script(wire) : wire.send(script)));
    gateway = await startGateway({
      providers: {
        openai: { apiKey: 'k', baseUrl: `${vendor.url}/v1` },
        groq: { apiKey: 'k', baseUrl: `${vendor.url}/v1` },
        together: { apiKey: 'k', baseUrl: `${vendor.url}/v1`, models: ['*'] },
        mistral: { apiKey: 'k', baseUrl: `${vendor.url}/v1` },
        other: { plugin: 'openai-compatible', apiKey: 'k', baseUrl: `${vendor.url}/v1`, models: ['*'] },
      },
      models: { ears: 'openai/whisper-1' },
    });
    openai = gateway.openai();
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const sound = () => toFile(Buffer.alloc(4000, 7), 'speech "1".mp3', { type: 'audio/mpeg' });
  /** Fields and file of the form that the vendor received. */
  const arrived = async () => {
    const { body = Buffer.alloc(0), headers } = vendor.requests.at(-1) ?? {};
    const type = String(headers?.['content-type']);
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
    const file = form.get('file') as File;
    form.delete('file');
    return { file: { name: file.name, type: file.type, size: file.size }, fields: [...form.entries()] };
  };
  const post = async (fields: Record<string, string | Blob>, path = '/v1/audio/transcriptions') => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    const headers = { authorization: `Bearer ${gateway.key}` };
    return fetch(gateway.url + path, { method: 'POST', headers, body: form });
  };
  const file = new Blob([Buffer.alloc(4000, 7)], { type: 'audio/mpeg' });

  it('E73: OpenAI’s SDK gets JSON, and the vendor’s duration, which is requested, is charged', async () => {
    script = respondWith(200, VERBOSE);
    const { data, response } = await openai.audio.transcriptions
      .create({ model: 'openai/whisper-1', file: await sound(), language: 'en', temperature: 0.2 })
      .withResponse();
    const own = { text: VERBOSE.text, usage: VERBOSE.usage };
    expect(data).to.deep.equal({ ...own, model: 'whisper-1', language: 'english' });
    expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.0009');
    expect(vendor.requests.at(-1)?.path).to.equal('/v1/audio/transcriptions');
    expect(vendor.requests.at(-1)?.headers['authorization']).to.equal('Bearer k');
    expect(await arrived()).to.deep.equal({
      file: { name: 'speech_1_.mp3', type: 'audio/mpeg', size: 4000 },
      fields: [
        ['model', 'whisper-1'],
        ['language', 'en'],
        ['temperature', '0.2'],
        ['response_format', 'verbose_json'],
      ],
    });
  });

  it('E73: text, subtitles and JSON with times are derived from the vendor’s response', async () => {
    script = respondWith(200, VERBOSE);
    const model = 'ears';
    const create = async (response_format: 'text' | 'srt' | 'vtt' | 'verbose_json') =>
      openai.audio.transcriptions.create({ model, file: await sound(), response_format });
    expect(await create('text')).to.equal(`${VERBOSE.text}\n`);
    expect(await create('srt')).to.equal(
      '1\n00:00:00,000 --> 00:00:03,320\nThe beach was a popular spot.\n\n2\n00:00:03,320 --> 01:02:05,500\nPeople were swimming.\n\n',
    );
    expect(await create('vtt')).to.match(/^WEBVTT\n\n00:00:00\.000 --> 00:00:03\.320\nThe beach/);
    expect(await create('verbose_json')).to.deep.equal(VERBOSE);
  });

  it('E73: models that count tokens get a JSON request, and are charged by tokens', async () => {
    script = respondWith(200, TOKENS);
    const { data, response } = await openai.audio.transcriptions
      .create({ model: 'openai/gpt-4o-transcribe', file: await sound(), include: ['logprobs'] })
      .withResponse();
    expect(data).to.deep.equal({ ...TOKENS, model: 'gpt-4o-transcribe', language: null });
    // 14 tokens of sound at 2.5 and 45 of text at 10 dollars per million.
    expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.000485');
    expect((await arrived()).fields).to.deep.include.members([
      ['response_format', 'json'],
      ['include[]', 'logprobs'],
    ]);
    const subtitles = await post({ model: 'openai/gpt-4o-transcribe', file, response_format: 'srt' });
    expect(subtitles.status, 'no times, no subtitles').to.equal(503);
  });

  it('E73: a stream has events, and its cost is in the ledger', async () => {
    script = sse(...EVENTS);
    const seen: object[] = [];
    const model = 'openai/gpt-4o-transcribe';
    for await (const event of await openai.audio.transcriptions.create({ model, file: await sound(), stream: true }))
      seen.push(event);
    expect(seen).to.deep.equal(EVENTS);
    const line = () =>
      gateway.logs.findLast(({ msg, model: named }) => msg === 'request' && named === 'gpt-4o-transcribe');
    await eventually(async () => expect(line()).to.include({ cost_usd: '0.000485' }));
    script = respondWith(200, VERBOSE);
    const whole: string[] = [];
    for await (const event of await openai.audio.transcriptions.create({
      model: 'ears',
      file: await sound(),
      stream: true,
    }))
      whole.push(event.type);
    expect(whole, 'a model that does not stream').to.deep.equal(['transcript.text.delta', 'transcript.text.done']);
  });

  it('E73: Mistral, whose form is closed, gets its own fields, without a stream, with times and streamed', async () => {
    // mistralai/client-ts: `AudioTranscriptionRequest`, `TranscriptionResponse`, `TranscriptionStreamEvents`
    const segment = { type: 'transcription_segment', text: ' Imagine it.', start: 0, end: 1.5 };
    const usage = { prompt_audio_seconds: 9, prompt_tokens: 4, completion_tokens: 45, total_tokens: 49 };
    const said = { model: 'voxtral-mini-latest', text: 'Imagine it.', language: null, usage };
    const model = 'mistral/voxtral-mini-latest';
    const fieldsOf = async () => (await arrived()).fields.filter(([name]) => name !== 'model');
    script = respondWith(200, said);
    const whole = await post({ model, file, language: 'en', prompt: 'Ideas' });
    expect(await whole.json()).to.deep.equal({ ...said, language: 'en' });
    expect(whole.headers.get('x-tollgate-dropped')).to.equal('prompt');
    expect(await fieldsOf()).to.deep.equal([['language', 'en']]);
    script = respondWith(200, { ...said, segments: [segment] });
    const times = await post({ model, file, response_format: 'srt' });
    expect(await times.text()).to.equal('1\n00:00:00,000 --> 00:00:01,500\nImagine it.\n\n');
    expect(await fieldsOf()).to.deep.equal([['timestamp_granularities', 'segment']]);
    script = sse(
      { type: 'transcription.language', audio_language: 'en' },
      { type: 'transcription.text.delta', text: 'Imagine ' },
      { type: 'transcription.text.delta', text: 'it.' },
      { type: 'transcription.done', ...said },
    );
    const events: object[] = [];
    for await (const event of await openai.audio.transcriptions.create({ model, file: await sound(), stream: true }))
      events.push(event);
    expect(events).to.deep.equal([
      { type: 'transcript.text.delta', delta: 'Imagine ' },
      { type: 'transcript.text.delta', delta: 'it.' },
      { type: 'transcript.text.done', text: 'Imagine it.', usage },
    ]);
    expect(await fieldsOf()).to.deep.equal([['stream', 'true']]);
    expect((await post({ model, file, response_format: 'diarized_json' })).status).to.equal(400);
  });

  for (const model of ['groq/whisper-large-v3', 'together/openai/whisper-large-v3'])
    it(`E73: ${model}, which does not stream, responds with JSON, and the caller gets events`, async () => {
      script = respondWith(200, VERBOSE);
      const response = await post({ model, file, stream: 'true', chunking_strategy: 'auto' });
      expect(response.headers.get('x-tollgate-dropped')).to.equal('chunking_strategy');
      expect(await response.text()).to.match(/transcript\.text\.delta[\s\S]*transcript\.text\.done/);
      expect((await arrived()).fields).to.deep.equal([
        ['model', model.slice(model.indexOf('/') + 1)],
        ['response_format', 'verbose_json'],
      ]);
    });

  it('E73: Groq charges ten seconds at least, which is reported to the caller', async () => {
    const { usage: _, ...unreported } = VERBOSE;
    script = respondWith(200, unreported);
    const short = await post({ model: 'groq/whisper-large-v3', file });
    expect(await short.json()).to.deep.include({ text: VERBOSE.text, usage: { type: 'duration', seconds: 10 } });
    expect(short.headers.get('x-tollgate-cost-usd'), '0.111 an hour, of ten seconds at least').to.match(/^0\.00030833/);
  });

  it('E73: an interrupted or incomplete stream ends in an error', async () => {
    for (const events of [EVENTS.slice(0, 1), [EVENTS[0] ?? {}, { error: { message: 'secret reason' } }]]) {
      script = sse(...events);
      const response = await post({ model: 'openai/gpt-4o-transcribe', file, stream: 'true' });
      const text = await response.text();
      expect(text)
        .to.include('Imagine')
        .and.to.match(/data: \{"error":/);
      expect(text).to.not.include('secret reason');
    }
  });

  it('E73: translations have their own route, on both surfaces', async () => {
    script = respondWith(200, VERBOSE);
    const said = await openai.audio.translations.create({ model: 'ears', file: await sound() });
    expect(said.text).to.equal(VERBOSE.text);
    expect(vendor.requests.at(-1)?.path).to.equal('/v1/audio/translations');
    const other = await post({ model: 'faster-whisper', file }, '/api/core/other/audio/translations');
    expect([other.status, other.headers.get('x-tollgate-cost-usd')]).to.deep.equal([200, 'unknown']);
  });

  it('E73: invalid forms are refused with the place, before any request', async () => {
    const before = vendor.requests.length;
    const say = async (fields: Record<string, string | Blob>) => {
      const response = await post(fields);
      const { error } = (await response.json()) as { error: { message: string; param: string | null } };
      return `${response.status} ${error.param} ${error.message}`;
    };
    const model = 'ears';
    expect(await say({ model })).to.match(/^400 file /);
    expect(await say({ model, file: new Blob([]) })).to.match(/^400 /);
    expect(await say({ file })).to.match(/^400 model /);
    expect(await say({ model, file, temperature: '7' })).to.match(/^400 temperature /);
    expect(await say({ model, file, response_format: 'mp3' })).to.match(/^400 response_format /);
    expect(await say({ model, file, 'timestamp_granularities[]': 'hour' })).to.match(/^400 timestamp_granularities /);
    expect(await say({ model, file: new Blob([Buffer.alloc(25 * 1024 * 1024 + 1)]) })).to.match(/^413 /);
    expect(await say({ model: 'echo/echo', file })).to.match(/^404 /);
    expect(vendor.requests.length).to.equal(before);
  });

  it('E73: the vendor’s error about an invalid file reaches the caller', async () => {
    script = respondWith(400, {
      error: {
        message: 'Invalid file format. Supported formats: flac, mp3',
        type: 'invalid_request_error',
        param: 'file',
      },
    });
    const response = await post({ model: 'ears', file });
    expect(response.status).to.equal(400);
    expect(await response.text()).to.include('Invalid file format');
  });
});
