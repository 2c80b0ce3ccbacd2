import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Command, type CommandInput, GatewayError, type Principal } from '../../../core/index.ts';
import { AUDIO_FORMATS, type SpeechFormat, type SpeechRequest } from '../../tts/kit/index.ts';
import { collectSound } from './collect-sound.ts';
import type { Speak } from './speak.ts';

/** Who the operator is at the command line: no key, no allow-list, an account of its own in the books. */
const OPERATOR: Principal = Object.freeze({ credential: 'key', userId: 'operator', account: 'operator' });

/** For the help, before the plugin is set up. */
export const SAY = Object.freeze({ name: 'say', summary: 'Speak a text; reads it from stdin when none is given' });

/**
 * `tollgate say`: a text through the pipeline of this configuration. The sound goes to `--output`, where it appears
 * whole or not at all, or to stdout when that is no terminal.
 */
export function createSayCommand(speak: Speak): Command {
  return {
    ...SAY,
    changesStore: false,
    args: [{ name: '[text...]', summary: 'the text; "-" or nothing reads stdin' }],
    options: [
      { flags: '--vendor <name>', summary: 'a vendor of the configuration; espeak unless set' },
      { flags: '-o, --output <file>', summary: 'where the sound goes; stdout when it is no terminal' },
      { flags: '--voice <name>', summary: 'a voice of the vendor' },
      { flags: '--model <name>', summary: 'a model of the vendor' },
      { flags: '--format <format>', summary: 'mp3, wav, opus …; else what the file’s extension says' },
      { flags: '--speed <factor>', summary: '0.25 to 4; 1 is normal' },
      { flags: '--language <code>', summary: 'such as en or de-DE' },
    ],
    run: (input) => say(speak, input),
  };
}

async function say(speak: Speak, { args, options, io, signal }: CommandInput): Promise<void> {
  const output = readText(options['output']);
  if (output === undefined && io.isTerminal)
    throw wrong('A terminal cannot play sound. Name a file (-o hello.wav), or pipe it to a player.');
  if (output === undefined && io.json)
    throw wrong('With --json stdout is for the result. Name a file for the sound: -o hello.wav');
  const words = args.join(' ');
  const text = words === '' || words === '-' ? await io.read() : words;
  const vendor = readText(options['vendor']) ?? 'espeak';
  const context = { principal: OPERATOR, requestId: `req_${randomUUID()}`, signal };
  const spoken = await speak(vendor, readRequest(text, options, output), context);
  const sound = await collectSound(spoken);
  if (output === undefined) {
    io.write(sound);
    return;
  }
  await writeWhole(output, sound);
  const { format, model, voice, characters } = spoken;
  io.result({ file: output, bytes: sound.length, format, vendor, model, voice, characters }, output);
}

/** What the options ask for; the format is the file's extension unless it is named. */
export function readRequest(text: string, options: CommandInput['options'], output: string | undefined): SpeechRequest {
  const extension = path
    .extname(output ?? '')
    .slice(1)
    .toLowerCase();
  const format = readText(options['format']) ?? (isFormat(extension) ? extension : undefined);
  if (format !== undefined && !isFormat(format))
    throw wrong(`"${format}" is not a format. Use ${Object.keys(AUDIO_FORMATS).join(', ')}.`);
  const speedText = readText(options['speed']);
  const speed = speedText === undefined ? undefined : Number(speedText);
  if (speed !== undefined && !(speed >= 0.25 && speed <= 4))
    throw wrong(`"${speedText}" is not a speed. Use 0.25 to 4; 1 is normal.`);
  const voice = readText(options['voice']);
  const model = readText(options['model']);
  const language = readText(options['language']);
  return {
    text,
    stream: false,
    split: true,
    ...(format !== undefined && { format }),
    ...(speed !== undefined && { speed }),
    ...(voice !== undefined && { voice }),
    ...(model !== undefined && { model }),
    ...(language !== undefined && { language }),
  };
}

function wrong(message: string): GatewayError {
  return new GatewayError('invalid_request', message);
}

function isFormat(word: string): word is SpeechFormat {
  return Object.hasOwn(AUDIO_FORMATS, word);
}

function readText(option: string | boolean | undefined): string | undefined {
  return typeof option === 'string' ? option : undefined;
}

/** Through a file beside it, so that nobody ever finds half a clip. */
async function writeWhole(file: string, sound: Buffer): Promise<void> {
  const part = `${file}.${process.pid}.part`;
  try {
    await writeFile(part, sound);
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
