// Operations other than chat of openai and SDKs generated like it. CLIENT is `openai`, `azure` or `groq`.
import * as is from './behaviours.mjs';

const isAzure = is.client === 'azure';
const isGroq = is.client === 'groq';
const sdk = await import(isGroq ? 'groq-sdk' : 'openai');
const { toFile } = sdk;
const place = {
  openai: { baseURL: `${is.base}/v1` },
  azure: { endpoint: is.base, apiVersion: '2025-04-01-preview' },
  groq: { baseURL: is.base },
}[is.client];
const openai = new (isAzure ? sdk.AzureOpenAI : sdk.default)({ ...place, apiKey: is.key, maxRetries: 0 });
const sound = () => toFile(is.SOUND, 'a.wav', { type: 'audio/wav' });
const png = () => toFile(Buffer.from(is.PNG, 'base64'), 'a.png', { type: 'image/png' });
const painter = 'openai/gpt-image-1';

async function eventsOf(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Response on a websocket, which the SDK's own class opens, requests and closes. */
async function talk() {
  const { OpenAIRealtimeWS } = await import('openai/realtime/ws');
  const model = 'realtime/gpt-realtime-2';
  const socket = isAzure
    ? await OpenAIRealtimeWS.azure(openai, { deploymentName: model })
    : new OpenAIRealtimeWS({ model }, openai);
  const text = await new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('session.created', () => socket.send({ type: 'response.create' }));
    socket.on('response.output_text.delta', ({ delta }) => resolve(delta));
  });
  socket.close();
  is.equal(text, 'fine', 'the text');
}

await is.report({
  async embeddings() {
    // The SDK requests base64 and decodes it itself.
    const { data, usage } = await openai.embeddings.create({ model: is.VECTOR_MODEL, input: is.TEXTS });
    is.equal([data.map(({ embedding }) => embedding), usage.total_tokens], [is.VECTORS, 9], 'the result');
  },
  ...(!isGroq && {
    async images() {
      const { data, usage } = await openai.images.generate({ model: painter, prompt: 'A dot' });
      is.equal([data[0].b64_json, usage.total_tokens], [is.PNG, 30], 'the image');
      const stream = await openai.images.generate({ model: painter, prompt: 'A dot', stream: true, partial_images: 1 });
      const types = (await eventsOf(stream)).map(({ type }) => type);
      is.equal(types, ['image_generation.partial_image', 'image_generation.completed'], 'the events');
    },
    async edits() {
      const { data } = await openai.images.edit({ model: painter, prompt: 'A dot', image: await png() });
      is.equal(data[0].b64_json, is.PNG, 'the image');
    },
  }),
  async transcription() {
    const model = 'openai/whisper-1';
    const { text } = await openai.audio.transcriptions.create({ model, file: await sound() });
    const whole = await openai.audio.transcriptions.create({
      ...{ model, file: await sound(), response_format: 'verbose_json', timestamp_granularities: ['segment'] },
    });
    is.equal([text, whole.segments[0].end], [is.HELLO, 2], 'the text');
    if (isGroq) return;
    const stream = await openai.audio.transcriptions.create({
      ...{ model: 'openai/gpt-4o-transcribe', file: await sound(), stream: true },
    });
    is.equal((await eventsOf(stream)).at(-1).text, is.HELLO, 'the last event');
  },
  async translation() {
    const { text } = await openai.audio.translations.create({ model: 'openai/whisper-1', file: await sound() });
    is.equal(text, is.HELLO, 'the text');
  },
  async speech() {
    const response = await openai.audio.speech.create({
      ...{ model: 'openai/tts-1', voice: 'alloy', input: 'Hi.', response_format: 'mp3' },
    });
    is.isMp3(await response.arrayBuffer());
  },
  ...(!isGroq && {
    async moderations() {
      const { results } = await openai.moderations.create({
        ...{ model: 'openai/omni-moderation-latest', input: ['Be kind.', 'I hurt you.'] },
      });
      is.equal(
        results.map(({ flagged }) => flagged),
        [false, true],
        'the verdicts',
      );
    },
  }),
  async files() {
    const content = is.lines('openai/gpt-5.5');
    const file = await openai.files.create({ purpose: 'batch', file: await toFile(Buffer.from(content), 'a.jsonl') });
    const known = isGroq ? await openai.files.info(file.id) : await openai.files.retrieve(file.id);
    is.equal([known.purpose, known.bytes], ['batch', content.length], 'the file');
    const ids = (await openai.files.list()).data.map(({ id }) => id);
    is.equal(ids, [file.id], 'the list');
    const read = await openai.files.content(file.id);
    is.equal((await read.text()).match(/"custom_id":"."/g).length, 2, 'the count of lines');
    is.equal((await openai.files.delete(file.id)).deleted, true, 'its deletion');
  },
  async batches() {
    const file = await openai.files.create({
      ...{ purpose: 'batch', file: await toFile(Buffer.from(is.lines('openai/gpt-5.5')), 'a.jsonl') },
    });
    const { id } = await openai.batches.create({
      ...{ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' },
    });
    const batch = await openai.batches.retrieve(id);
    is.equal(batch.status, 'completed', 'the state');
    const text = await (await openai.files.content(batch.output_file_id)).text();
    is.equal(text.split(is.HELLO).length, 3, 'the count of results');
    is.equal((await openai.batches.list()).data[0].id, id, 'the list');
  },
  ...(!isGroq && { realtime: talk }),
});
