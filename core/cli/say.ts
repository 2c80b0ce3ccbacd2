import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { AUDIO_FORMATS } from '../audio/formats.ts';
import { createId } from '../calls/ids.ts';
import { createRuntime } from '../calls/runtime.ts';
import type { Principal } from '../contract/call.ts';
import type { SpeechFormat, SpeechRequest } from '../contract/speech.ts';
import { collectSound } from '../speech/collect-sound.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { withAssembly } from './load.ts';

/** Who the operator is at the command line: no key, no allow-list, an account of its own in the books. */
const OPERATOR: Principal = Object.freeze({ credential: 'key', userId: 'operator', account: 'operator' });

/**
 * `tollgate say`: a text through the pipeline of this configuration. The sound goes to `--output`, where it appears
 * whole or not at all, or to stdout when that is no terminal.
 */
export async function run(context: CommandContext): Promise<void> {
  const { options, args, globals, terminal } = context;
  const words = args.join(' ');
  const text = words === '' || words === '-' ? await readStdin() : words;
  const vendor = readText(options['vendor']) ?? 'espeak';
  const output = readText(options['output']);
  if (output === undefined && process.stdout.isTTY) {
    throw new CliError(
      'a terminal cannot play sound',
      EXIT.usage,
      'Name a file (-o hello.wav), or pipe it to a player.',
    );
  }
  const request = readRequest(text, options, output);
  await withAssembly(context, async (assembly) => {
    const runtime = createRuntime(assembly);
    const stop = new AbortController();
    process.once('SIGINT', () => stop.abort());
    try {
      const call = { principal: OPERATOR, requestId: createId('req_'), signal: stop.signal };
      const answer = await runtime.services.speak(vendor, request, call);
      const sound = await collectSound(answer);
      if (output === undefined) {
        terminal.out.write(sound);
        return;
      }
      await writeWhole(output, sound);
      const { format, model, voice, characters } = answer;
      const facts = { file: output, bytes: sound.length, format, vendor, model, voice, characters };
      createIo(terminal, globals.json === true).result(facts, output);
    } finally {
      await runtime.close();
    }
  });
}

/** What the options ask for; the format is the file's extension unless it is named. */
export function readRequest(
  text: string,
  options: CommandContext['options'],
  output: string | undefined,
): SpeechRequest {
  const extension = path
    .extname(output ?? '')
    .slice(1)
    .toLowerCase();
  const format = readText(options['format']) ?? (isFormat(extension) ? extension : undefined);
  if (format !== undefined && !isFormat(format)) {
    throw new CliError(`"${format}" is not a format`, EXIT.usage, `Use ${Object.keys(AUDIO_FORMATS).join(', ')}.`);
  }
  const speedText = readText(options['speed']);
  const speed = speedText === undefined ? undefined : Number(speedText);
  if (speed !== undefined && !(speed >= 0.25 && speed <= 4)) {
    throw new CliError(`"${speedText}" is not a speed`, EXIT.usage, 'Use 0.25 to 4; 1 is normal.');
  }
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
    throw new CliError(`cannot write ${file}: ${(error as Error).message}`, EXIT.unexpected);
  }
}

async function readStdin(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Write the text and end it with Ctrl-D:\n');
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += String(chunk);
  return text;
}
