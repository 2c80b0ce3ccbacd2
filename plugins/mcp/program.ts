import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { JSONRPCMessage, ReadBuffer, Transport } from '@modelcontextprotocol/client';
import type { ProgramOptions } from './config-schema.ts';
import type { Sdk } from './sdk.ts';

/**
 * Starts the program in a process group and ends the whole group when the gateway closes the fourth pipe, or ends in any way:
 * the pipe closes with its process.
 */
const GUARD = '(cat <&3; kill -KILL 0) </dev/null >/dev/null 2>&1 & exec "$@" 3<&-';

/** Interval of memory measurements. */
const MEASURE_MS = 2000;

/** Waits for the end of a program after its input has closed, and after SIGTERM. */
const END_MS = 500;
const TERM_MS = 1000;

/** Maximum length of the end of a program's error output that is kept. */
const MAX_ERRORS = 2000;

/** Maximum processes whose memory is measured. */
const MAX_PROCESSES = 200;

/** Maximum size of messages without a request, such as notifications, since the last response; a multiple of the largest message. */
const MAX_UNASKED = 4;

export interface ProgramTransportOptions extends ProgramOptions {
  /** Maximum size of one message. */
  readonly maxMessageBytes: number;
}

/** Connection to an MCP server that is a program: JSON-RPC by lines of stdin and stdout. */
export class ProgramTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  /** The SDK recognizes a transport over stdio by this member and `pid`. */
  readonly stderr = null;
  /** Reason of the end, for operators. */
  problem: string | undefined;
  readonly #sdk: Sdk;
  readonly #options: ProgramTransportOptions;
  readonly #buffer: ReadBuffer;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #errors = '';
  #unaskedBytes = 0;
  #isClosed = false;

  constructor(sdk: Sdk, options: ProgramTransportOptions) {
    this.#sdk = sdk;
    this.#options = options;
    this.#buffer = new sdk.client.ReadBuffer({ maxBufferSize: options.maxMessageBytes });
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): Promise<void> {
    const { command, args, cwd, env } = this.#options;
    const hasGroups = process.platform !== 'win32';
    const [file, all] = hasGroups ? ['/bin/sh', ['-c', GUARD, 'mcp', command, ...args]] : [command, [...args]];
    return new Promise((resolve, reject) => {
      const child = spawn(file, all, {
        cwd,
        env: { ...this.#sdk.stdio.getDefaultEnvironment(), ...env },
        stdio: hasGroups ? ['pipe', 'pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe'],
        detached: hasGroups,
        windowsHide: true,
      });
      this.#child = child;
      this.#exited = new Promise((exited) => {
        const end = (reason: string): void => {
          this.#end(reason);
          exited();
        };
        child.once('exit', (code, signal) => end(`it ended with ${signal ?? `exit code ${code}`}`));
        child.once('error', (error) => {
          end(`it cannot be started: ${error.message}`);
          reject(error);
        });
      });
      child.once('spawn', () => {
        this.#timer = setInterval(() => void this.#measure(), MEASURE_MS).unref();
        resolve();
      });
      for (const stream of child.stdio) stream?.on('error', () => undefined);
      child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
      child.stderr.on('data', (chunk: Buffer) => {
        this.#errors = `${this.#errors}${chunk.toString('utf8')}`.slice(-MAX_ERRORS);
      });
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin || this.#isClosed) throw new Error('the program has ended');
    if (stdin.write(this.#sdk.client.serializeMessage(message))) return;
    await Promise.race([new Promise<void>((resolve) => stdin.once('drain', resolve)), this.#exited]);
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (!child || this.#isClosed) return;
    this.#isClosed = true;
    child.stdin?.end();
    if (!(await this.#hasExited(END_MS))) this.#kill('SIGTERM');
    if (!(await this.#hasExited(TERM_MS))) this.#kill('SIGKILL');
    await this.#exited;
  }

  /** Ends the program at once because it broke a bound. */
  #stop(problem: string): void {
    this.problem ??= problem;
    this.onerror?.(new Error(problem));
    this.#kill('SIGKILL');
  }

  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk);
      this.#unaskedBytes += chunk.length;
    } catch {
      this.#stop(`it sent a message of more than ${this.#options.maxMessageBytes} bytes`);
      return;
    }
    for (;;)
      try {
        const message = this.#buffer.readMessage();
        if (message === null) break;
        if (!('method' in message)) this.#unaskedBytes = 0;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      }
    if (this.#unaskedBytes > this.#options.maxMessageBytes * MAX_UNASKED)
      this.#stop('it sent too many messages that are not responses');
  }

  async #measure(): Promise<void> {
    const { pid } = this.#child ?? {};
    if (pid === undefined) return;
    const bytes = await memoryOf(pid);
    if (bytes > this.#options.maxMemoryBytes)
      this.#stop(`it used more than ${this.#options.maxMemoryBytes} bytes of memory`);
  }

  /** Ends the connection after the exit of the program, with the processes that it left. */
  #end(reason: string): void {
    clearInterval(this.#timer);
    const line = this.#errors.trim().split('\n').at(-1) ?? '';
    this.problem ??= line === '' ? reason : `${reason}: ${line.slice(0, 300)}`;
    this.#isClosed = true;
    (this.#child?.stdio[3] as Writable | null | undefined)?.destroy();
    this.#child?.stdin?.destroy();
    this.#buffer.clear();
    this.onclose?.();
  }

  #hasExited(ms: number): Promise<boolean> {
    return Promise.race([this.#exited.then(() => true), pause(ms, false)]);
  }

  #kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child ?? {};
    if (pid === undefined) return;
    try {
      if (process.platform === 'win32') this.#child?.kill(signal);
      else process.kill(-pid, signal);
    } catch {
      // The group has ended already.
    }
  }
}

/** Page size of Linux on all platforms that Node supports. */
const PAGE_BYTES = 4096;

/** Returns the memory of a process and its descendants; 0 where the system does not report it. */
async function memoryOf(root: number): Promise<number> {
  const waiting = [root];
  let bytes = 0;
  for (let seen = 0; seen < MAX_PROCESSES; seen += 1) {
    const pid = waiting.pop();
    if (pid === undefined) break;
    const [memory, children] = await Promise.all([
      readFile(`/proc/${pid}/statm`, 'utf8').catch(() => ''),
      readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => ''),
    ]);
    bytes += Number(memory.split(' ')[1] ?? 0) * PAGE_BYTES;
    waiting.push(...children.split(' ').map(Number).filter(Boolean));
  }
  return bytes;
}
