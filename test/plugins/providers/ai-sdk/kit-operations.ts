import type { HttpRequest } from '../../../../contract/index.ts';
import type { FormFile, ImageOffer, TranscriptionOffer } from '../../../../plugins/formats/kit/index.ts';
import images from '../../../../plugins/operations/images.ts';
import transcription from '../../../../plugins/operations/transcription.ts';
import { type OperationKit, type RunnerFunctions, testOperation, testSpeech } from '../../../conformance/index.ts';
import { fixture } from '../../../support/speech/sound.ts';
import { CALL, type PackageSubject, pluginOf, type VendorResponse } from './kit-subject.ts';

const IMAGE = 'iVBORw0KGgo=';
const SPOKEN = 'People were swimming.';

const json = (body: object): VendorResponse => ({
  ...{ status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
});
const bytes = (type: string, body: Uint8Array): VendorResponse => ({
  ...{ status: 200, headers: { 'content-type': type }, body },
});

/** Images in the form of the vendor; undefined for a vendor that these tests do not play. */
function imagesOf({
  name,
  packaged: { wire },
}: PackageSubject): ((request: HttpRequest) => VendorResponse) | undefined {
  if (wire === 'gemini') return undefined;
  if (wire === 'bedrock') return () => json({ images: [IMAGE] });
  if (name.includes('deepinfra')) return () => json({ images: [`data:image/png;base64,${IMAGE}`] });
  if (wire === 'replicate')
    return ({ path }) =>
      path.endsWith('/predictions')
        ? json({
            status: 'succeeded',
            output: ['http://vendor.example/a.png'],
            urls: { get: 'http://vendor.example/p' },
          })
        : bytes('image/png', Buffer.from(IMAGE, 'base64'));
  return () => json({ created: 1_713_833_628, data: [{ b64_json: IMAGE }] });
}

/** File of a caller; the kit never reads it. */
const FILE = { field: 'file', name: 'a.mp3', contentType: 'audio/mpeg', bytes: 4000, path: import.meta.filename };
const SOUND: FormFile = { field: 'file', name: 'a.mp3', contentType: 'audio/mpeg', bytes: Buffer.from('ID3') } as never;

/** Sounds of the vendors, by format. */
const SOUNDS = Object.freeze({
  ...{ mp3: 'hi.mp3', wav: 'hi.wav', opus: 'hi.opus', flac: 'hi.flac', pcm: 'hi.wav', aac: 'hi.aac' },
} as const);

/**
 * Runs the kits of other operations on what a package makes of its vendor's responses. Returns the operations that it
 * declares and these tests cover.
 */
export async function testOperations(subject: PackageSubject, runner: RunnerFunctions): Promise<readonly string[]> {
  const { kinds, offers, packaged } = subject;
  const tested = kinds.includes('embeddings') ? ['embeddings'] : [];
  const run = (kit: OperationKit): void => testOperation({ ...kit, runner });
  const vendor = imagesOf(subject);
  const { codec: painter } = (offers.get('images') ?? {}) as Partial<ImageOffer>;
  if (kinds.includes('images') && painter && vendor) {
    const request = { model: 'm-1', prompt: 'A beach' };
    const sent = painter.request(request as never, [], CALL);
    const made = JSON.parse((await subject.exchange(sent as HttpRequest, vendor)).text) as object;
    const response = { json: { created: 1_790_000_000, data: [{ b64_json: IMAGE }] } };
    run({ plugin: images, offer: { codec: painter }, samples: [{ request, vendor: made, response }] });
    tested.push('images');
  }
  const { codec: scribe } = (offers.get('transcription') ?? {}) as Partial<TranscriptionOffer>;
  if (kinds.includes('transcription') && scribe && packaged.wire !== 'gemini') {
    const request = { model: 'm-1', task: 'transcribe', file: FILE };
    const sent = scribe.request(request as never, SOUND.bytes as never, CALL);
    const heard = await subject.exchange(sent as HttpRequest, () => json({ ...HEARD, text: SPOKEN }));
    const made = JSON.parse(heard.text) as { readonly usage?: object };
    // Some packages pass on the tokens.
    const usage = { type: 'tokens', input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    const response = { json: { text: SPOKEN, model: 'm-1', language: null, ...(made.usage && { usage }) } };
    run({
      plugin: transcription,
      offer: { codec: scribe },
      samples: [{ request, vendor: made, response }],
    });
    tested.push('transcription');
  }
  if (kinds.includes('speech') && packaged.wire !== 'gemini') {
    await speak(subject, runner);
    tested.push('speech');
  }
  return tested;
}

const HEARD = Object.freeze({
  model: 'm-1',
  x_groq: { id: 'req_1' },
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
});

async function speak(subject: PackageSubject, runner: RunnerFunctions): Promise<void> {
  const plugin = pluginOf(subject);
  const silent = subject.packaged.formats ?? [];
  const samples = await Promise.all(
    Object.entries(SOUNDS)
      .filter(([format]) => !silent.includes(format))
      .map(async ([format, file]) => {
        const sound = fixture(file);
        const body = { model: 'm-1', text: 'Good morning', outputFormat: format === 'pcm' ? 'wav' : format };
        const isJson = subject.packaged.wire === 'mistral';
        const vendor = () =>
          isJson ? json({ audio_data: sound.toString('base64') }) : bytes('application/octet-stream', sound);
        const { text } = await subject.exchange({ path: '/speech', body }, vendor);
        return { format, headers: { 'content-type': 'application/json' }, body: Buffer.from(text) };
      }),
  );
  testSpeech({
    plugin: { ...plugin, kind: 'tts' } as never,
    config: { ...subject.config, baseUrl: 'http://vendor.example', apiKey: 'conformance-0123456789', models: ['m-1'] },
    samples: samples as never,
    errors: [
      { status: 429, headers: { 'retry-after': '7' }, body: { error: { type: 'rate_limit' } }, class: 'rate_limit' },
    ],
    runner,
  });
}
