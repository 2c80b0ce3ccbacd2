import { CommanderError } from 'commander';
import { isGatewayError } from '../contract/errors.ts';
import { CliError, EXIT, type Terminal } from './io.ts';

interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly lines: readonly string[];
  readonly hint?: string | undefined;
  readonly faults?: readonly unknown[];
}

const HINTS: Readonly<Record<string, string>> = Object.freeze({
  store_unavailable: 'It is `store` in the configuration; `tollgate config print` shows which.',
});

/** What a script is told beside an exit code. */
const CODES: Readonly<Record<number, string>> = Object.freeze({
  [EXIT.usage]: 'usage',
  [EXIT.config]: 'config',
  [EXIT.checkFailed]: 'check_failed',
  [EXIT.unavailable]: 'unavailable',
});

/** `bind` is what the workers of a cluster are told. */
const LISTENING: ReadonlySet<string> = new Set(['listen', 'bind', 'getaddrinfo']);

const LISTEN_HINTS: Readonly<Record<string, string>> = Object.freeze({
  EADDRINUSE: 'Another process has this port: choose one with --port or server.port in the configuration.',
  EACCES: 'Ports below 1024 need special rights: choose another with --port or server.port in the configuration.',
  EADDRNOTAVAIL:
    'This machine does not have that address: 127.0.0.1 is for itself alone, 0.0.0.0 for all of its networks.',
  ENOTFOUND: 'The host is no address and no name that resolves: try 127.0.0.1 or 0.0.0.0.',
});

/** Says what went wrong, where, why and what to do, on stderr (and as one JSON document with `--json`); answers the exit code. */
export function reportFailure(error: unknown, terminal: Terminal, json: boolean): number {
  // commander has written its help or version.
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
  const failure = describeFailure(error);
  if (json)
    terminal.out.write(
      `${JSON.stringify({ ok: false, error: { code: failure.code, message: failure.lines.join('\n'), ...(failure.hint && { hint: failure.hint }), ...(failure.faults && { faults: failure.faults }) } })}\n`,
    );
  else {
    for (const line of failure.lines) terminal.err.write(`${terminal.colors.red('error')}  ${line}\n`);
    if (failure.hint) terminal.err.write(`       ${failure.hint}\n`);
  }
  return failure.exitCode;
}

/** What went wrong, in lines, for operators. */
export function describeError(error: unknown): readonly string[] {
  const { code, lines } = describeFailure(error);
  return code === 'unexpected' && error instanceof Error ? [error.message] : lines;
}

function describeFailure(error: unknown): Failure {
  if (error instanceof CommanderError) return describeMisuse(error);
  if (error instanceof CliError)
    return {
      exitCode: error.exitCode,
      code: CODES[error.exitCode] ?? 'unexpected',
      lines: [error.message],
      hint: error.hint,
    };
  if (!(error instanceof Error)) return { exitCode: EXIT.unexpected, code: 'unexpected', lines: [String(error)] };
  if (error.name === 'ConfigError') {
    const faults = 'problems' in error && Array.isArray(error.problems) ? error.problems : [];
    return { exitCode: EXIT.config, code: 'config', lines: error.message.split('\n'), faults };
  }
  if (error.name === 'PluginError')
    return { exitCode: EXIT.config, code: 'plugin', lines: [error.message, ...describeCauses(error.cause)] };
  if (isGatewayError(error)) {
    // A command of a plugin writes what to do on a line of its own.
    const [message = '', hint = HINTS[error.code]] = error.message.split('\n');
    const exitCode = error.status > 500 || error.status === 429 ? EXIT.unavailable : EXIT.usage;
    return { exitCode, code: error.code, lines: [message, ...describeCauses(error.cause)], hint };
  }
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code !== undefined && syscall !== undefined && LISTENING.has(syscall)) {
    return {
      exitCode: EXIT.unavailable,
      code,
      lines: [`cannot listen: ${error.message}`],
      hint: LISTEN_HINTS[code] ?? 'Look at --host and --port, or server.host and server.port in the configuration.',
    };
  }
  return {
    exitCode: EXIT.unexpected,
    code: code ?? 'unexpected',
    lines: [syscall ? error.message : (error.stack ?? error.message)],
  };
}

/** commander's complaint: what is wrong, and in brackets what was meant. */
function describeMisuse({ code, message }: CommanderError): Failure {
  const usage = { exitCode: EXIT.usage, code: 'usage' };
  if (code === 'commander.help')
    return { ...usage, lines: ['a command is missing here'], hint: 'The help above lists them.' };
  const [line = '', meant] = message.replace(/^error: /, '').split('\n');
  return { ...usage, lines: [line], hint: meant?.replace(/^\((.*)\)$/, '$1') ?? 'Add --help to see what it takes.' };
}

/** How many causes of an error are told. */
const MAX_CAUSES = 3;

/**
 * What the system or a database said, which callers of the gateway never see: a path, an address, an errno. Causes without a code
 * are our own words again.
 */
function describeCauses(cause: unknown): readonly string[] {
  const lines: string[] = [];
  for (let at: unknown = cause; at instanceof Error && lines.length < MAX_CAUSES; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    // Of a host with several addresses, one error for each.
    const all = at instanceof AggregateError ? at.errors : [at];
    const messages = all.flatMap((each: unknown) => (each instanceof Error ? [each.message] : []));
    if (code !== undefined)
      lines.push(`because: ${[...new Set(messages)].join('; ')}${messages.join().includes(code) ? '' : ` (${code})`}`);
  }
  return lines;
}
