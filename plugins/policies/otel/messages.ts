// OTLP messages as data: names and numbers of their fields, from opentelemetry-proto 1.11 (trace, metrics, common and
// resource, all stable). One table defines both encodings.

/**
 * Encoding of a field: `id` is hexadecimal text and bytes, `nanos` are Unix milliseconds and nanoseconds, `any` is an
 * attribute value.
 */
type Scalar = 'text' | 'id' | 'nanos' | 'enum' | 'flags' | 'flag' | 'double' | 'count';

interface Field {
  readonly number: number;
  readonly type: Scalar | 'any' | MessageType;
  readonly many?: true;
}

/** Fields of a message by JSON name, in the order of their numbers. */
export interface MessageType {
  readonly [name: string]: Field;
}

const one = (number: number, type: Field['type']): Field => ({ number, type });
const many = (number: number, type: Field['type']): Field => ({ number, type, many: true });

const ATTRIBUTE: MessageType = { key: one(1, 'text'), value: one(2, 'any') };
const RESOURCE: MessageType = { attributes: many(1, ATTRIBUTE) };
const SCOPE: MessageType = { name: one(1, 'text'), version: one(2, 'text') };
const EVENT: MessageType = { timeUnixNano: one(1, 'nanos'), name: one(2, 'text'), attributes: many(3, ATTRIBUTE) };
const STATUS: MessageType = { message: one(2, 'text'), code: one(3, 'enum') };

const SPAN: MessageType = {
  traceId: one(1, 'id'),
  spanId: one(2, 'id'),
  traceState: one(3, 'text'),
  parentSpanId: one(4, 'id'),
  name: one(5, 'text'),
  kind: one(6, 'enum'),
  startTimeUnixNano: one(7, 'nanos'),
  endTimeUnixNano: one(8, 'nanos'),
  attributes: many(9, ATTRIBUTE),
  events: many(11, EVENT),
  status: one(15, STATUS),
  flags: one(16, 'flags'),
};

const HISTOGRAM_POINT: MessageType = {
  startTimeUnixNano: one(2, 'nanos'),
  timeUnixNano: one(3, 'nanos'),
  count: one(4, 'count'),
  sum: one(5, 'double'),
  bucketCounts: many(6, 'count'),
  explicitBounds: many(7, 'double'),
  attributes: many(9, ATTRIBUTE),
};
const HISTOGRAM: MessageType = { dataPoints: many(1, HISTOGRAM_POINT), aggregationTemporality: one(2, 'enum') };
const METRIC: MessageType = {
  name: one(1, 'text'),
  description: one(2, 'text'),
  unit: one(3, 'text'),
  histogram: one(9, HISTOGRAM),
};

/** Message for `/v1/traces`. */
export const TRACES: MessageType = {
  resourceSpans: many(1, {
    resource: one(1, RESOURCE),
    scopeSpans: many(2, { scope: one(1, SCOPE), spans: many(2, SPAN), schemaUrl: one(3, 'text') }),
    schemaUrl: one(3, 'text'),
  }),
};

/** Message for `/v1/metrics`. */
export const METRICS: MessageType = {
  resourceMetrics: many(1, {
    resource: one(1, RESOURCE),
    scopeMetrics: many(2, { scope: one(1, SCOPE), metrics: many(2, METRIC), schemaUrl: one(3, 'text') }),
    schemaUrl: one(3, 'text'),
  }),
};

/** Attribute value: text, boolean, integer, float, or a list of texts. */
export type AttributeValue = string | boolean | number | readonly string[];

export interface Attribute {
  readonly key: string;
  readonly value: AttributeValue;
}

/** Attributes of the values that are defined. */
export function attributesOf(values: Readonly<Record<string, AttributeValue | undefined>>): readonly Attribute[] {
  return Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value }]));
}

/** Message as plain data, the input of {@link toJson} and {@link toProtobuf}. */
export type Message = Readonly<Record<string, unknown>>;

/** Encodes OTLP JSON: 64-bit numbers as text, ids in hexadecimal. */
export function toJson(message: Message, type: MessageType): object {
  const json: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(type)) {
    const value = message[name];
    if (value === undefined) continue;
    const write = (each: unknown): unknown => jsonValue(each, field.type);
    json[name] = field.many && Array.isArray(value) ? value.map(write) : write(value);
  }
  return json;
}

function jsonValue(value: unknown, type: Field['type']): unknown {
  if (typeof type === 'object') return toJson(value as Message, type);
  if (type === 'nanos') return String(nanosOf(value));
  if (type === 'count') return String(value);
  if (type !== 'any') return value;
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'string') return { stringValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map((each) => jsonValue(each, 'any')) } };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

function nanosOf(ms: unknown): bigint {
  return BigInt(Math.round(Number(ms) * 1000)) * 1000n;
}

/** Encodes a message as protobuf. */
export function toProtobuf(message: Message, type: MessageType): Buffer {
  const parts: Buffer[] = [];
  for (const [name, field] of Object.entries(type)) {
    const value = message[name];
    if (value === undefined) continue;
    if (!field.many) writeField(parts, field, value);
    else if (Array.isArray(value))
      if (field.type === 'count' || field.type === 'double') writePacked(parts, field, value);
      else for (const each of value) writeField(parts, field, each);
  }
  return Buffer.concat(parts);
}

/** Wire types of protobuf fields. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

function writeField(parts: Buffer[], { number, type }: Field, value: unknown): void {
  if (typeof type === 'object') writeBytes(parts, number, toProtobuf(value as Message, type));
  else if (type === 'any') writeBytes(parts, number, anyValue(value));
  else if (type === 'text') writeBytes(parts, number, Buffer.from(String(value)));
  else if (type === 'id') writeBytes(parts, number, Buffer.from(String(value), 'hex'));
  else if (type === 'enum' || type === 'flag') parts.push(tag(number, VARINT), varint(BigInt(Number(value))));
  else if (type === 'flags') {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(Number(value));
    parts.push(tag(number, FIXED32), bytes);
  } else parts.push(tag(number, FIXED64), fixed64(value, type));
}

function fixed64(value: unknown, type: Field['type']): Buffer {
  const bytes = Buffer.alloc(8);
  if (type === 'double') bytes.writeDoubleLE(Number(value));
  else bytes.writeBigUInt64LE(type === 'nanos' ? nanosOf(value) : BigInt(Number(value)));
  return bytes;
}

function writePacked(parts: Buffer[], { number, type }: Field, values: readonly unknown[]): void {
  if (values.length > 0) writeBytes(parts, number, Buffer.concat(values.map((value) => fixed64(value, type))));
}

function anyValue(value: unknown): Buffer {
  const parts: Buffer[] = [];
  if (typeof value === 'string') writeBytes(parts, 1, Buffer.from(value));
  else if (typeof value === 'boolean') parts.push(tag(2, VARINT), varint(value ? 1n : 0n));
  else if (Array.isArray(value)) {
    const values: Buffer[] = [];
    for (const each of value) writeBytes(values, 1, anyValue(each));
    writeBytes(parts, 5, Buffer.concat(values));
  } else if (Number.isSafeInteger(value)) parts.push(tag(3, VARINT), varint(BigInt.asUintN(64, BigInt(Number(value)))));
  else parts.push(tag(4, FIXED64), fixed64(value, 'double'));
  return Buffer.concat(parts);
}

function writeBytes(parts: Buffer[], number: number, bytes: Buffer): void {
  parts.push(tag(number, LENGTH), varint(BigInt(bytes.length)), bytes);
}

function tag(number: number, wire: number): Buffer {
  return varint(BigInt((number << 3) | wire));
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
