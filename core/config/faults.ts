import path from 'node:path';
import { formatPath, type Positions, positionOf } from './positions.ts';

/** One mistake in the configuration: where it is, what is wrong and what to do. Holds no secret. */
export interface ConfigFault {
  /** Relative to the working directory when it lies in there, absolute otherwise. */
  readonly file: string;
  /** Counted from 1; absent where the format tells no positions (js, ts). */
  readonly line?: number;
  readonly column?: number;
  /** As `providers.openai.apiKey`; empty for the whole file. */
  readonly path: string;
  /** What is wrong, without a full stop. */
  readonly message: string;
  /** What to do, a whole sentence. */
  readonly hint?: string;
}

/** What is known about a fault before its place in the file is looked up. */
export interface FaultAt {
  /** A JSON pointer into the configuration. */
  readonly pointer: string;
  /** Whether the key itself is wrong (an unknown name) rather than its value. */
  readonly atKey?: boolean;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Thrown with all faults at once; its message is the whole report. Source: {@link formatFault}. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly ConfigFault[];

  constructor(faults: readonly ConfigFault[]) {
    const sorted = faults.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    const count = sorted.length === 1 ? '1 fault' : `${sorted.length} faults`;
    super(`${sorted.map(formatFault).join('\n')}\n${count} in the configuration`);
    this.faults = sorted;
  }
}

/** `tollgate.config.yaml:3:5 server.prot: unknown key. Did you mean "port"?` */
export function formatFault(fault: ConfigFault): string {
  const place = [fault.file, fault.line, fault.column].filter((part) => part !== undefined).join(':');
  const subject = fault.path === '' ? '' : `${fault.path}: `;
  return `${place} ${subject}${fault.message.replace(/\.$/, '')}.${fault.hint === undefined ? '' : ` ${fault.hint}`}`;
}

/** The error of faults in a configuration, each at its place in the file. */
export function createConfigError(
  faults: readonly FaultAt[],
  { file, positions }: { readonly file: string; readonly positions: Positions },
): ConfigError {
  return new ConfigError(
    faults.map(({ pointer, atKey, message, hint }) => ({
      file,
      ...positionOf(positions, pointer, atKey === true),
      path: formatPath(pointer),
      message,
      ...(hint !== undefined && { hint }),
    })),
  );
}

/** A file's name as people know it: relative to where they are, when it lies in there. */
export function displayPath(file: string, cwd: string): string {
  const relative = path.relative(cwd, file);
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? file : relative;
}

/** Sorts by file, line, column and path. */
function placeOf({ file, line = 0, column = 0, path: at }: ConfigFault): string {
  return [file, String(line).padStart(9), String(column).padStart(9), at].join('\0');
}
