import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import {
  definePlugin,
  GatewayError,
  type HttpRequest,
  parseDuration,
  type ResponseHeaders,
  StreamFailure,
  type Transport,
  type TransportResponse,
} from '../../../contract/index.ts';
import { AUDIO_FORMATS, type SpeechFormat } from '../kit/index.ts';
import { createEspeakCodec, type Encoding, type EspeakTask, readEspeakError, SPEED } from './codec.ts';
import {
  type EspeakVoices,
  isEspeakVoice,
  languageVoice,
  listedVoices,
  readLanguages,
  readVariants,
} from './voices.ts';

interface EspeakPrograms {
  readonly espeak: string;
  readonly ffmpeg: string;
  /** Time limit of one text. */
  readonly timeoutMs: number;
}

/** Arguments of ffmpeg by format, for speech of one voice. */
const ENCODER: Readonly<Record<Encoding, readonly string[]>> = Object.freeze({
  mp3: ['-codec:a', 'libmp3lame', '-b:a', '64k', '-write_xing', '0', '-id3v2_version', '0', '-f', 'mp3'],
  opus: ['-codec:a', 'libopus', '-b:a', '32k', '-application', 'voip', '-f', 'ogg'],
  aac: ['-codec:a', 'aac', '-b:a', '64k', '-f', 'adts'],
  flac: ['-codec:a', 'flac', '-f', 'flac'],
});

/** The program's WAV has a placeholder for its size, which ffmpeg must ignore. */
const ENCODER_INPUT = [
  '-hide_banner',
  '-nostdin',
  '-loglevel',
  'quiet',
  '-ignore_length',
  '1',
  '-f',
  'wav',
  '-i',
  'pipe:0',
];

/** More than the longest text at the lowest speed produces. */
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * Runs the program: without a shell, with the text on standard input, never in an argument. Its output is read as
 * fast as it arrives, so a slow listener holds memory (bounded) but no process. An abort, the time limit, or a
 * disconnected listener kills it. Responds like a server: 200, or 422 for a successful exit without sound, or 503 if
 * too many texts wait. Before the first byte, a timeout is a 504, and a failure a 500.
 */
function createEspeakTransport(programs: EspeakPrograms, gate: Gate): Transport {
  return async (request, signal) => {
    const task = readTask(request);
    const espeak = findProgram(programs.espeak);
    const ffmpeg = findProgram(programs.ffmpeg);
    if (espeak === undefined || (task.encode && ffmpeg === undefined)) return refusal(500);
    const leave = await gate.enter(signal);
    if (!leave) return refusal(503, { 'retry-after': '1' });
    const children = startAll(task, espeak, ffmpeg, leave);
    const sound = listen(children, { signal, timeoutMs: programs.timeoutMs, leave });
    try {
      if (!(await sound.started)) return refusal(422);
    } catch (error) {
      if (error instanceof StreamFailure) return refusal(error.failure.class === 'timeout' ? 504 : 500);
      throw error;
    }
    return { status: 200, headers: { 'content-type': AUDIO_FORMATS[task.encode ?? 'wav'].contentType }, body: sound };
  };
}

/** Task that the codec of this plugin put into the request. */
function readTask({ body }: HttpRequest): EspeakTask {
  return body as EspeakTask;
}

function refusal(status: number, headers: ResponseHeaders = {}): TransportResponse {
  return { status, headers, body: nothing() };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function startAll(task: EspeakTask, espeak: string, ffmpeg: string | undefined, leave: () => void): ChildProcess[] {
  const children: ChildProcess[] = [];
  try {
    const rate = String(task.wordsPerMinute);
    const speaker = start(espeak, ['-v', task.voice, '-s', rate, '-b', '1', '--stdin', '--stdout']);
    children.push(speaker);
    // A program that exits early closes its input, which is not an error in itself: the exit code shows the cause.
    speaker.stdin?.on('error', () => {}).end(task.text);
    if (!task.encode || ffmpeg === undefined) return children;
    const encoder = start(ffmpeg, [...ENCODER_INPUT, ...ENCODER[task.encode], 'pipe:1']);
    children.push(encoder);
    if (encoder.stdin) speaker.stdout?.pipe(encoder.stdin.on('error', () => {}));
    // The remaining output is not read.
    encoder.once('close', (code) => code !== 0 && speaker.kill('SIGKILL'));
    return children;
  } catch (error) {
    for (const child of children) child.kill('SIGKILL');
    leave();
    throw error;
  }
}

function start(program: string, args: readonly string[]): ChildProcess {
  return spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], env: programEnvironment(), windowsHide: true });
}

interface Run {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Leaves the gate. */
  readonly leave: () => void;
}

/** Collects the output of the last program until all have exited. */
function listen(children: readonly ChildProcess[], { signal, timeoutMs, leave }: Run): ByteQueue {
  const stop = (error: unknown) => {
    sound.fail(error);
    for (const child of children) child.kill('SIGKILL');
  };
  const sound = createByteQueue(() => stop(new DOMException('The client disconnected.', 'AbortError')));
  const abort = () => stop(signal.reason);
  const timer = setTimeout(
    () => stop(failure('The speech program timed out. Shorten the text.', 'timeout')),
    timeoutMs,
  );
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  let length = 0;
  children.at(-1)?.stdout?.on('data', (bytes: Buffer) => {
    length += bytes.length;
    if (length > MOST_BYTES) stop(failure('The audio became too long. Shorten the text.'));
    else sound.push(bytes);
  });
  void Promise.all(children.map(exitCode)).then((codes) => {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    leave();
    if (codes.every((code) => code === 0)) sound.end();
    else sound.fail(failure('The speech program failed.'));
  });
  return sound;
}

function failure(message: string, kind: 'timeout' | 'upstream_error' = 'upstream_error'): StreamFailure {
  return new StreamFailure({ class: kind, message });
}

/** Null for a program that was killed or could not be started. */
function exitCode(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(null));
    child.once('close', resolve);
  });
}

/** Bytes from a program for a reader. The writer never waits, so the program finishes early. */
interface ByteQueue extends AsyncIterable<Uint8Array> {
  push(bytes: Uint8Array): void;
  end(): void;
  /**
   * Ends the iteration with an error, after the bytes that had arrived. Calls after an end or a failure have no
   * effect.
   */
  fail(error: unknown): void;
  /** True once there are bytes, false at an end without any; rejects with a failure before the first byte. */
  readonly started: Promise<boolean>;
}

/** `onLeave` runs when the listener leaves before the end. */
function createByteQueue(onLeave: () => void): ByteQueue {
  const bytes: Uint8Array[] = [];
  let outcome: { readonly error?: unknown } | undefined;
  let wake = () => {};
  let start: (some: boolean) => void = () => {};
  let refuse: (error: unknown) => void = () => {};
  const started = new Promise<boolean>((resolve, reject) => {
    start = resolve;
    refuse = reject;
  });
  // A reader of the iteration alone gets the failure there.
  started.catch(() => {});

  function finish(how: { readonly error?: unknown }): void {
    if (outcome) return;
    outcome = how;
    if ('error' in how) refuse(how.error);
    else start(false);
    wake();
  }

  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const next = bytes.shift();
        if (next) yield next;
        else if (outcome) {
          if ('error' in outcome) throw outcome.error;
          return;
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      if (!outcome) onLeave();
    }
  }

  return {
    push(piece) {
      if (outcome) return;
      bytes.push(piece);
      start(true);
      wake();
    },
    end: () => finish({}),
    fail: (error) => finish({ error }),
    started,
    [Symbol.asyncIterator]: read,
  };
}

const configSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    voice: { type: 'string', default: 'en-us', description: 'Default voice.' },
    concurrency: {
      type: 'integer',
      minimum: 1,
      maximum: 64,
      description: 'Maximum number of concurrent texts. Default: number of processors.',
    },
    timeout: { type: 'string', format: 'duration', default: '30s', description: 'Timeout of one text.' },
    program: {
      type: 'string',
      default: 'espeak-ng',
      description: 'Name of the program on PATH, or its absolute path.',
    },
    ffmpeg: { type: 'string', default: 'ffmpeg', description: 'Program that encodes mp3, opus, aac and flac.' },
  },
} as const;

const NATIVE: readonly SpeechFormat[] = Object.freeze(['wav', 'pcm']);
const ENCODED: readonly SpeechFormat[] = Object.freeze(['mp3', 'opus', 'aac', 'flac']);
const NO_VOICES: EspeakVoices = Object.freeze({ languages: [], variants: [] });
const LIST_TIMEOUT_MS = 10_000;
const LONGEST_LIST_BYTES = 1024 * 1024;

/**
 * Offline speech by the program espeak-ng (https://github.com/espeak-ng/espeak-ng): free of charge, in over a hundred
 * languages. The program is searched for at each call, so it may be installed while the gateway runs.
 */
export default definePlugin({
  name: 'espeak',
  kind: 'tts',
  apiVersion: 1,
  configSchema,
  setup(api, config) {
    const { program = 'espeak-ng', ffmpeg = 'ffmpeg', voice = 'en-us', timeout = '30s' } = config;
    const places = config.concurrency ?? availableParallelism();
    const voices = createVoiceTable(program);
    api.offer('speech', {
      specVersion: 1,
      vendor: 'espeak',
      baseUrl: 'http://espeak.invalid',
      models: [{ id: 'espeak-ng', kind: 'speech', price: { input: 0, output: 0, characters: 0 } }],
      get formats() {
        return findProgram(ffmpeg) === undefined ? NATIVE : [...NATIVE, ...ENCODED];
      },
      defaultVoice: voice,
      acceptsVoice: (id) => isEspeakVoice(id, voices.known()),
      voiceFor: (language) => languageVoice(language, voices.known()),
      voices: async () => listedVoices(await voices.load()),
      maxCharacters: 4096,
      speed: SPEED,
      codec: createEspeakCodec(voices.known),
      transport: createEspeakTransport(
        { espeak: program, ffmpeg, timeoutMs: parseDuration(timeout) },
        createGate(places, places * 8),
      ),
      error: readEspeakError,
    });
  },
});

/** Voices reported by the program: loaded once, while it is installed. */
function createVoiceTable(program: string) {
  let table: EspeakVoices | undefined;
  let listing: Promise<EspeakVoices> | undefined;
  return {
    known: (): EspeakVoices => table ?? NO_VOICES,
    async load(): Promise<EspeakVoices> {
      const found = findProgram(program);
      if (found === undefined) throw missingProgram();
      if (table) return table;
      listing ??= listVoicesOf(found).finally(() => {
        listing = undefined;
      });
      table = await listing;
      return table;
    },
  };
}

function missingProgram(): GatewayError {
  return new GatewayError(
    'feature_disabled',
    'The program espeak-ng is not installed on the gateway’s machine. Install it: apt-get install espeak-ng',
  );
}

const run = promisify(execFile);

async function listVoicesOf(program: string): Promise<EspeakVoices> {
  const options = { env: programEnvironment(), timeout: LIST_TIMEOUT_MS, maxBuffer: LONGEST_LIST_BYTES };
  try {
    const [languages, variants] = await Promise.all([
      run(program, ['--voices'], options),
      run(program, ['--voices=variant'], options),
    ]);
    return { languages: readLanguages(languages.stdout), variants: readVariants(variants.stdout) };
  } catch (error) {
    throw new GatewayError('provider_unavailable', 'The speech program does not list its voices.', { cause: error });
  }
}

/** Path of a program: the given path, otherwise the first executable with its name on PATH. */
function findProgram(program: string, searchPath: string = process.env['PATH'] ?? ''): string | undefined {
  const candidates = isAbsolute(program)
    ? [program]
    : searchPath
        .split(delimiter)
        .filter((folder) => folder !== '')
        .map((folder) => join(folder, program));
  return candidates.find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Environment of a child process: paths of programs and of espeak's data, and no secrets. */
function programEnvironment(): Record<string, string> {
  const kept = ['PATH', 'ESPEAK_DATA_PATH', 'LD_LIBRARY_PATH', 'SYSTEMROOT'];
  const entries = kept.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(entries), LANG: 'C.UTF-8' };
}

/** Limits the number of concurrent and of waiting tasks. */
interface Gate {
  /**
   * Resolves with a function that leaves the gate, or undefined if too many wait. Throws the signal's reason on
   * abort.
   */
  enter(signal: AbortSignal): Promise<(() => void) | undefined>;
}

function createGate(places: number, waitingPlaces: number): Gate {
  let free = places;
  const waiting: (() => void)[] = [];

  function leaveOnce(): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    };
  }

  return {
    async enter(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return leaveOnce();
      }
      if (waiting.length >= waitingPlaces) return undefined;
      await new Promise<void>((resolve, reject) => {
        const admit = () => {
          signal.removeEventListener('abort', give);
          resolve();
        };
        const give = () => {
          const index = waiting.indexOf(admit);
          if (index >= 0) waiting.splice(index, 1);
          reject(signal.reason as Error);
        };
        waiting.push(admit);
        signal.addEventListener('abort', give, { once: true });
      });
      return leaveOnce();
    },
  };
}
