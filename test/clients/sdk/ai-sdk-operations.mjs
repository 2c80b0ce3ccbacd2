// Operations of Vercel's AI SDK 7 other than chat. CLIENT is `openai`, `google` or `cohere`.
import { createCohere } from '@ai-sdk/cohere';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import * as ai from 'ai';
import * as is from './behaviours.mjs';

const [create, version] = {
  openai: [createOpenAI, 'v1'],
  google: [createGoogleGenerativeAI, 'v1beta'],
  cohere: [createCohere, 'v2'],
}[is.client];
const provider = create({ baseURL: `${is.base}/${version}`, apiKey: is.key });
const maxRetries = 0;

async function embeddings() {
  const model = provider.embedding(is.VECTOR_MODEL);
  const { embeddings: many } = await ai.embedMany({ model, values: is.TEXTS, maxRetries });
  const { embedding } = await ai.embed({ model, value: 'one', maxRetries });
  is.equal([many, embedding], [is.VECTORS, is.VECTORS[0]], 'the vectors');
}

async function openaiImage(prompt) {
  const { image } = await ai.generateImage({ model: provider.image('openai/gpt-image-1'), prompt, maxRetries });
  is.equal(image.base64, is.PNG, 'the image');
}

const own = {
  openai: {
    embeddings,
    images: () => openaiImage('A dot'),
    edits: () => openaiImage({ text: 'A dot', images: [Buffer.from(is.PNG, 'base64')] }),
    async transcription() {
      const transcribe = ai.transcribe ?? ai.experimental_transcribe;
      const { text, segments } = await transcribe({
        ...{ model: provider.transcription('openai/whisper-1'), audio: is.SOUND, maxRetries },
        providerOptions: { openai: { responseFormat: 'verbose_json' } },
      });
      is.equal([text, segments[0].endSecond], [is.HELLO, 2], 'the text');
    },
    async speech() {
      const generate = ai.generateSpeech ?? ai.experimental_generateSpeech;
      const model = provider.speech('openai/tts-1');
      const { audio } = await generate({ model, text: 'Hi.', voice: 'alloy', outputFormat: 'mp3', maxRetries });
      is.isMp3(audio.uint8Array);
    },
  },
  google: { embeddings },
  cohere: {
    embeddings,
    async rerank() {
      const documents = ['Rome is wet.', is.HELLO, 'Paris is sunny.'];
      const { ranking } = await ai.rerank({
        ...{ model: provider.reranking('ranker/m'), documents, query: 'Say hello', topN: 2, maxRetries },
      });
      is.equal([ranking.length, ranking[0].document], [2, is.HELLO], 'the ranking');
    },
  },
}[is.client];

await is.report(own);
