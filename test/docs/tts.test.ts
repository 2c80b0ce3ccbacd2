import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { Plugin } from '../../contract/index.ts';
import { checkSpeech } from '../../plugins/operations/speech/check.ts';
import { SPEECH_BODY } from '../../plugins/operations/speech/schemas.ts';
import cartesia from '../../plugins/tts/cartesia.ts';
import deepgram from '../../plugins/tts/deepgram.ts';
import elevenlabs from '../../plugins/tts/elevenlabs.ts';
import espeak from '../../plugins/tts/espeak/index.ts';
import gemini from '../../plugins/tts/gemini.ts';
import type { SpeechRequest } from '../../plugins/tts/kit/index.ts';
import mistral from '../../plugins/tts/mistral.ts';
import openai from '../../plugins/tts/openai.ts';
import { loadSpeech } from '../support/speech/speech-vendor.ts';

const page = readFileSync(new URL('../../docs/plugins/tts.md', import.meta.url), 'utf8');
const validate = new Ajv2020({ strict: true, strictTypes: false }).compile(SPEECH_BODY);
const PLUGINS = [espeak, openai, elevenlabs, deepgram, cartesia, mistral, gemini] as readonly Plugin[];

describe('the page on speech', () => {
  for (const plugin of PLUGINS) {
    const { name } = plugin;
    const row = new RegExp(`^\\| \`${name}\` \\| (.*?) \\| (.*?) \\| (.*?) \\|`, 'm').exec(page);
    const curl = new RegExp(`curl \\$TOLLGATE_URL/${name}/tts [^']*'[^']*' \\\\\\n\\s+-d '(.*?)'`).exec(page);

    it(`tells what ${name} can do`, async () => {
      const { speed, formats, maxCharacters, models } = await loadSpeech(plugin);
      const [, reported = '', range, characters = ''] = row ?? [];
      expect(reported.replace(/ with ffmpeg/, '').split(/[,;] /)).to.include.members([...formats]);
      expect(reported.startsWith(String(formats[0]))).to.equal(true);
      expect(range).to.equal(speed.min === speed.max ? 'one' : `${speed.min}–${speed.max}`);
      const most = Math.max(maxCharacters, ...models.map((model) => model.maxCharacters ?? 0));
      expect(characters).to.include(most.toLocaleString('en'));
    });

    it(`has a curl line for ${name} whose body is a good request`, async () => {
      const body = JSON.parse(curl?.[1] ?? 'null') as SpeechRequest;
      expect(validate(body), JSON.stringify(validate.errors)).to.equal(true);
      const vendor = await loadSpeech(plugin);
      if (name === 'espeak') return;
      const { input, model } = checkSpeech(vendor, body);
      vendor.codec.request(input, { model, stream: true, created: 1, id: 'x' });
    });

    it(`lists every option of ${name}`, async () => {
      const vendor = await loadSpeech(plugin);
      if (name === 'espeak') return;
      const { input, model } = checkSpeech(vendor, { text: 'a', options: { no_such_option: 1 } });
      try {
        vendor.codec.request(input, { model, stream: true, created: 1, id: 'x' });
      } catch (error) {
        const names = /It has (.*)\.$/.exec((error as Error).message)?.[1]?.split(', ') ?? [];
        const paragraph = page.slice(page.indexOf(`\n**${name}**`)).split('```')[0] ?? '';
        for (const option of names) expect(paragraph).to.include(`\`${option}\``);
        return;
      }
      expect.fail('it took the option');
    });
  }
});
