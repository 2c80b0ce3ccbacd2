import { isObject, type JsonObject, readArray, readString, StreamFailure } from '../../../core/index.ts';

/**
 * Calls whose arguments come in pieces: `partialArgs` name a place (`$.city`, `$.stops[0].name`) and a value; a text may go on
 * in the next piece. Source: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
 */
export interface PartialCalls {
  /** The whole call that a `functionCall` is or completes; undefined while more is to come. */
  read(called: JsonObject, signature: string | undefined): WholeCall | undefined;
  /** The call that is complete although nothing closed it, at the end of a candidate. Throws when it broke off in the middle. */
  end(): WholeCall | undefined;
}

export interface WholeCall {
  readonly called: JsonObject;
  readonly signature: string | undefined;
}

interface OpenCall {
  readonly head: JsonObject;
  signature: string | undefined;
  readonly args: JsonObject;
  /** Whether the last piece was a text that goes on. */
  isBroken: boolean;
}

/** Follows the calls of one candidate. */
export function createPartialCalls(): PartialCalls {
  let open: OpenCall | undefined;

  const close = (): WholeCall | undefined => {
    if (!open) return undefined;
    const { head, signature, args, isBroken } = open;
    open = undefined;
    if (isBroken) throw broken('broke off a function call amid its arguments');
    return { called: { ...head, args }, signature };
  };

  return {
    read(called, signature) {
      const goesOn = called['willContinue'] === true;
      const pieces = called['partialArgs'];
      if (!open && !goesOn && pieces === undefined)
        return readString(called['name']) ? { called, signature } : undefined;
      if (open && readString(called['name']) && called['name'] !== open.head['name'])
        throw broken('began a function call within another');
      open ??= { head: called, signature: undefined, args: { ...readArgs(called) }, isBroken: false };
      open.signature = signature ?? open.signature;
      for (const piece of readArray(pieces)) open.isBroken = addPiece(open.args, piece);
      return goesOn ? undefined : close();
    },
    end: close,
  };
}

function readArgs({ args }: JsonObject): JsonObject {
  return isObject(args) ? args : {};
}

/** Puts one piece into the arguments; returns whether its text goes on. */
function addPiece(args: JsonObject, piece: unknown): boolean {
  const path = isObject(piece) ? readPath(readString(piece['jsonPath'])) : undefined;
  if (!isObject(piece) || !path) throw broken('sent arguments of a function call that cannot be put together');
  const { stringValue, numberValue, boolValue, willContinue } = piece;
  const value = stringValue ?? numberValue ?? boolValue ?? ('nullValue' in piece ? null : '');
  putAt(args, path, value);
  return willContinue === true;
}

type Step = string | number;

/** The steps of a path such as `$.stops[0]['full name']`; undefined for what is none. */
function readPath(text: string | undefined): readonly Step[] | undefined {
  if (!text?.startsWith('$')) return undefined;
  const rest = text.slice(1);
  const steps: Step[] = [];
  let read = 0;
  for (const [whole, name, index, quoted] of rest.matchAll(/\.([^.[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]/g)) {
    read += whole.length;
    steps.push(index === undefined ? (name ?? quoted ?? '') : Number(index));
  }
  const isWhole = read === rest.length && steps.length > 0 && typeof steps[0] === 'string';
  return isWhole && !steps.includes('__proto__') ? steps : undefined;
}

/** Sets a value at a path, making what is missing on the way; a text is added to a text that is there. */
function putAt(root: JsonObject, [first, ...rest]: readonly Step[], value: unknown): void {
  let holder: JsonObject | unknown[] = root;
  let step = first;
  for (const next of rest) {
    const known: unknown = readAt(holder, step);
    const child: JsonObject | unknown[] = isHolder(known) ? known : typeof next === 'number' ? [] : {};
    writeAt(holder, step, child);
    holder = child;
    step = next;
  }
  const before = readAt(holder, step);
  writeAt(holder, step, typeof before === 'string' && typeof value === 'string' ? before + value : value);
}

function isHolder(value: unknown): value is JsonObject | unknown[] {
  return typeof value === 'object' && value !== null;
}

function readAt(holder: JsonObject | unknown[], step: Step | undefined): unknown {
  if (Array.isArray(holder)) return typeof step === 'number' ? holder[step] : undefined;
  return step !== undefined && Object.hasOwn(holder, step) ? holder[step] : undefined;
}

function writeAt(holder: JsonObject | unknown[], step: Step | undefined, value: unknown): void {
  if (Array.isArray(holder) && typeof step === 'number') holder[step] = value;
  else if (!Array.isArray(holder) && typeof step === 'string') holder[step] = value;
  else throw broken('sent arguments of a function call that cannot be put together');
}

function broken(what: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider ${what}.` });
}
