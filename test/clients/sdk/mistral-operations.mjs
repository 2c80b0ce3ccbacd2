// Operations of @mistralai/mistralai other than chat.
import { Mistral } from '@mistralai/mistralai';
import * as is from './behaviours.mjs';

const mistral = new Mistral({ serverURL: is.base, apiKey: is.key, retryConfig: { strategy: 'none' } });

await is.report({
  async embeddings() {
    const { data, usage } = await mistral.embeddings.create({ model: 'mistral/mistral-embed', inputs: is.TEXTS });
    is.equal([data.map(({ embedding }) => embedding), usage.totalTokens], [is.VECTORS, 9], 'the result');
  },
  async transcription() {
    const file = { fileName: 'a.wav', content: is.SOUND };
    for (const model of ['mistral/voxtral-mini-latest', 'openai/whisper-1']) {
      const { text } = await mistral.audio.transcriptions.complete({ model, file });
      is.equal(text, is.HELLO, 'the text');
    }
  },
  async speech() {
    const { audioData } = await mistral.audio.speech.complete({
      ...{ model: 'openai/tts-1', voiceId: 'alloy', input: 'Hi.', responseFormat: 'mp3' },
    });
    is.isMp3(Buffer.from(audioData, 'base64'));
  },
  async moderations() {
    const { results } = await mistral.classifiers.moderate({
      ...{ model: 'mistral/mistral-moderation-latest', inputs: ['Be kind.', 'I hurt you.'] },
    });
    is.equal(
      results.map(({ categories }) => categories.violence),
      [false, true],
      'the verdicts',
    );
  },
  async batches() {
    await mistral.batch.jobs.create({ endpoint: '/v1/chat/completions', model: 'mistral/m', inputFiles: ['file-1'] });
  },
});
