import { createHash } from 'node:crypto';
import { GatewayError, isObject, type Records } from '../../contract/index.ts';

/** Definitions of a server's tools that operators have accepted, and those that wait for them. */
export interface ServerPins {
  /** Accepted tools by name. */
  readonly tools: Readonly<Record<string, Pin>>;
  /** New and changed tools by name, which no caller gets. */
  readonly waiting: Readonly<Record<string, WaitingPin>>;
}

export interface Pin {
  /** Hash of the whole definition. */
  readonly hash: string;
  /** Beginning of the definition as JSON, for operators. */
  readonly text: string;
}

export interface WaitingPin extends Pin {
  /** Unix milliseconds at which it was seen. */
  readonly since: number;
}

/** Maximum length of a stored definition. */
const MAX_TEXT = 4000;

/** Maximum number of stored tools of a server that the server no longer lists. */
const MAX_GONE = 500;

/** Returns the pin of a tool's definition. */
export function pinOf(definition: object): Pin {
  const text = JSON.stringify(sorted(definition));
  return { hash: createHash('sha256').update(text).digest('hex'), text: text.slice(0, MAX_TEXT) };
}

/** Sorts the members of all objects, so that equal definitions are equal texts. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}

/** Time for which the pins of a server are cached. */
const KNOWN_MS = 2000;

/** Pins of all servers in the gateway's store. */
export class PinBook {
  readonly #records: Records<ServerPins>;
  readonly #known = new Map<string, { readonly at: number; readonly pins: Promise<ServerPins | undefined> }>();

  constructor(records: Records<ServerPins>) {
    this.#records = records;
    records.onChange((server) => this.#known.delete(server));
  }

  /** Returns the pins of a server; undefined before its first list. */
  of(server: string): Promise<ServerPins | undefined> {
    const known = this.#known.get(server);
    if (known && performance.now() - known.at < KNOWN_MS) return known.pins;
    const pins = this.#records.find(server).then(({ value }) => value);
    this.#known.set(server, { at: performance.now(), pins });
    // A store that failed is asked again by the next call.
    pins.catch(() => this.#known.delete(server));
    return pins;
  }

  /** Compares a list of tools with the pins. The first list of a server is accepted; later additions and changes wait. */
  async compare(server: string, tools: ReadonlyMap<string, Pin>): Promise<void> {
    const pins = await this.of(server);
    if (pins && compared(pins, tools) === pins) return;
    await this.#records.change(server, (value) => (value ? compared(value, tools) : first(tools)));
    await this.#records.note(server);
  }
}

/** Accepts waiting tools: the named ones, or all. Throws for a tool that does not wait. */
export function acceptWaiting(pins: ServerPins, names: readonly string[]): ServerPins {
  const missing = names.find((name) => !Object.hasOwn(pins.waiting, name));
  if (missing !== undefined) throw new GatewayError('not_found', `The tool "${missing}" is not withheld.`);
  const all = Object.entries(pins.waiting);
  const isAmong = (name: string): boolean => names.length === 0 || names.includes(name);
  const accepted = all
    .filter(([name]) => isAmong(name))
    .map(([name, { hash, text }]) => [name, { hash, text }] as const);
  return {
    tools: { ...pins.tools, ...Object.fromEntries(accepted) },
    waiting: Object.fromEntries(all.filter(([name]) => !isAmong(name))),
  };
}

function first(tools: ReadonlyMap<string, Pin>): ServerPins {
  return { tools: Object.fromEntries(tools), waiting: {} };
}

/** Returns the same object if nothing changed. */
function compared(pins: ServerPins, tools: ReadonlyMap<string, Pin>): ServerPins {
  const waiting: Record<string, WaitingPin> = {};
  for (const [name, { hash, text }] of tools) {
    if (isAccepted(pins, name, hash)) continue;
    const before = Object.hasOwn(pins.waiting, name) ? pins.waiting[name] : undefined;
    waiting[name] = before?.hash === hash ? before : { hash, text, since: Date.now() };
  }
  const isSame =
    Object.keys(waiting).length === Object.keys(pins.waiting).length &&
    Object.entries(waiting).every(([name, pin]) => pins.waiting[name] === pin);
  if (isSame) return pins;
  const gone = Object.entries(pins.tools).filter(([name]) => !tools.has(name));
  const kept = Object.entries(pins.tools).filter(([name]) => tools.has(name));
  return { tools: Object.fromEntries([...kept, ...gone.slice(-MAX_GONE)]), waiting };
}

/** Returns whether operators accepted this definition of a tool. */
export function isAccepted(pins: ServerPins | undefined, name: string, hash: string): boolean {
  return pins !== undefined && Object.hasOwn(pins.tools, name) && pins.tools[name]?.hash === hash;
}
