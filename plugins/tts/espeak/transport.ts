import { type ChildProcess, spawn } from 'node:child_process';
import {
  type HttpRequest,
  type ResponseHeaders,
  StreamFailure,
  type Transport,
  type TransportResponse,
} from '../../../core/index.ts';
import { AUDIO_FORMATS } from '../kit/index.ts';
import { type ByteQueue, createByteQueue } from './byte-queue.ts';
import type { Encoding, EspeakTask } from './codec.ts';
import type { Gate } from './gate.ts';
import { findProgram, programEnvironment } from './program.ts';

export interface EspeakPrograms {
  readonly espeak: string;
  readonly ffmpeg: string;
  /** How long one text may take. */
  readonly timeoutMs: number;
}

/** ffmpeg's arguments for a format, for speech of one voice. */
const ENCODER: Readonly<Record<Encoding, readonly string[]>> = Object.freeze({
  mp3: ['-codec:a', 'libmp3lame', '-b:a', '64k', '-write_xing', '0', '-id3v2_version', '0', '-f', 'mp3'],
  opus: ['-codec:a', 'libopus', '-b:a', '32k', '-application', 'voip', '-f', 'ogg'],
  aac: ['-codec:a', 'aac', '-b:a', '64k', '-f', 'adts'],
  flac: ['-codec:a', 'flac', '-f', 'flac'],
});

/** The program's WAV has a placeholder for a size, which ffmpeg is told not to believe. */
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

/** More than the longest text at the lowest speed makes. */
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * Speaks through the program: no shell, the text by standard input and never in an argument. Its sound is taken as
 * fast as it comes, so that a slow listener holds memory (bounded) but no process. Abort, deadline and a listener who
 * leaves kill it. Answers as a server would: 200, 422 for a good end without a sound, 503 when too many texts wait,
 * 504 and 500 when it took too long or failed before its first byte.
 */
export function createEspeakTransport(programs: EspeakPrograms, gate: Gate): Transport {
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

/** What the codec of this plugin put into the request. */
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
    // A program that ends early closes its input, which is no error by itself: the exit code tells why.
    speaker.stdin?.on('error', () => {}).end(task.text);
    if (!task.encode || ffmpeg === undefined) return children;
    const encoder = start(ffmpeg, [...ENCODER_INPUT, ...ENCODER[task.encode], 'pipe:1']);
    children.push(encoder);
    if (encoder.stdin) speaker.stdout?.pipe(encoder.stdin.on('error', () => {}));
    // Nobody reads what the speaker still says.
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
  /** Gives the place back. */
  readonly leave: () => void;
}

/** Gathers what the last program says until all of them are gone. */
function listen(children: readonly ChildProcess[], { signal, timeoutMs, leave }: Run): ByteQueue {
  const stop = (error: unknown) => {
    sound.fail(error);
    for (const child of children) child.kill('SIGKILL');
  };
  const sound = createByteQueue(() => stop(new DOMException('The listener left.', 'AbortError')));
  const abort = () => stop(signal.reason);
  const timer = setTimeout(() => stop(failure('Speaking took too long.', 'timeout')), timeoutMs);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  let length = 0;
  children.at(-1)?.stdout?.on('data', (bytes: Buffer) => {
    length += bytes.length;
    if (length > MOST_BYTES) stop(failure('The sound became too long.'));
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
