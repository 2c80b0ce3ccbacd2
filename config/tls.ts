import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type FromSchema, isObject, type Schema } from '../contract/json.ts';
import type { ProblemAt } from '../contract/pointers.ts';
import type { Lookup } from './interpolate.ts';

/** `server.tls` of a configuration, with the content of its files as PEM. */
export interface TlsConfig {
  /** Certificate of the gateway, followed by intermediate certificates. */
  readonly cert: string;
  readonly key: string;
  readonly passphrase?: string;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Authorities of client certificates; without them no client certificate is requested. */
  readonly clientCa?: string;
  /** `required` refuses clients without a certificate. */
  readonly clientAuth: 'required' | 'optional';
}

const NAME = { type: 'string', minLength: 1 } as const;
const FILE = { ...NAME, format: 'path' } as const;

/** Schema of `server.tls`. */
export const TLS_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['cert', 'key'],
  description: 'Serves HTTPS instead of HTTP. A reload reads the files again.',
  properties: {
    cert: { ...FILE, description: 'PEM file with the certificate, followed by intermediate certificates.' },
    key: { ...FILE, description: 'PEM file with its private key.' },
    passphrase: { ...NAME, secret: true, description: 'Passphrase of the key.' },
    minVersion: {
      type: 'string',
      enum: ['TLSv1.2', 'TLSv1.3'],
      default: 'TLSv1.2',
      description: 'Minimum TLS version of clients.',
    },
    clientCa: {
      ...FILE,
      description: 'PEM file with authorities. Clients are asked for a certificate signed by one of them.',
    },
    clientAuth: {
      type: 'string',
      enum: ['required', 'optional'],
      description:
        '`required` rejects clients without a certificate; `optional` rejects only invalid ones. Default with `clientCa`: `required`.',
    },
  },
} as const satisfies Schema;

/** `server.tls` as written in the configuration: file names. */
export type TlsValues = FromSchema<typeof TLS_SCHEMA>;

const SERVER: TlsPlace = Object.freeze({ pointer: '/server/tls', ca: 'clientCa', mayBeText: false });
const MISSING = 'Create it, or correct the path. Relative paths start at the configuration file.';
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Reads the files of `server.tls`, which {@link checkTls} accepted. */
export function readTls(
  { cert, key, clientCa, clientAuth = 'required', ...rest }: TlsValues,
  files: Pick<Lookup, 'file'>,
): TlsConfig {
  return {
    ...rest,
    cert: files.file(cert),
    key: files.file(key),
    ...(clientCa !== undefined && { clientCa: files.file(clientCa) }),
    clientAuth,
  };
}

/** Checks `server.tls`, whose shape may be wrong too: the files, their content, and whether they match. */
export function checkTls(values: unknown, files: Pick<Lookup, 'file'>): readonly ProblemAt[] {
  if (!isObject(values)) return [];
  const problems: ProblemAt[] = [];
  if (values['clientAuth'] !== undefined && values['clientCa'] === undefined)
    problems.push({
      pointer: `${SERVER.pointer}/clientAuth`,
      message: 'asks clients for certificates, but no authority is set',
      hint: 'Set server.tls.clientCa to the file of their authority, or remove clientAuth.',
    });
  return [...checkCertificates(values, files, SERVER), ...problems];
}

/** Position of certificates in a configuration, and the key of the authorities there. */
interface TlsPlace {
  readonly pointer: string;
  readonly ca: 'ca' | 'clientCa';
  /** True if the option may contain PEM text in place of a file name. */
  readonly mayBeText: boolean;
}

type Texts = Readonly<Record<'cert' | 'key' | 'ca', string | undefined>>;

/** Checks a certificate, its key and authorities; their shape may be wrong too. */
export function checkCertificates(
  values: Readonly<Record<string, unknown>>,
  files: Pick<Lookup, 'file'>,
  place: TlsPlace,
): readonly ProblemAt[] {
  const problems: ProblemAt[] = [];
  const read = (name: string): string | undefined => {
    const value = values[name];
    if (typeof value !== 'string') return undefined;
    const text = readFile(value, files, place.mayBeText);
    if (typeof text === 'string') return text;
    problems.push({ pointer: `${place.pointer}/${name}`, ...text });
    return undefined;
  };
  const texts = { cert: read('cert'), key: read('key'), ca: read(place.ca) };
  const { passphrase } = values;
  problems.push(...checkPair(texts, typeof passphrase === 'string' ? passphrase : undefined, place));
  return problems;
}

/** Returns the PEM text of an option, or of the file that it names; {@link checkCertificates} accepted it before. */
export function readPem(text: string, files: Pick<Lookup, 'file'>): string {
  return text.includes(BEGIN) ? text : files.file(text);
}

const BEGIN = '-----BEGIN';

/** Reads a file, or reports the problem with its name. */
function readFile(
  name: string,
  files: Pick<Lookup, 'file'>,
  mayBeText: boolean,
): string | Pick<ProblemAt, 'message' | 'hint'> {
  // Invalid names are not shown: the text may be the key.
  if (name.includes(BEGIN))
    return mayBeText
      ? name
      : { message: 'is the text of a file, not its name', hint: 'Use only the path, without a reference.' };
  try {
    return files.file(name);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === undefined ? message : `cannot be read (${code})`;
    return { message: `needs the file ${name.slice(0, 200)}, which ${why}`, hint: MISSING };
  }
}

/** Checks the content of the files; unreadable files are reported already. */
function checkPair({ cert, key, ca }: Texts, passphrase: string | undefined, place: TlsPlace): readonly ProblemAt[] {
  const certificate = cert === undefined ? undefined : parse(() => firstCertificate(cert));
  const secret =
    key === undefined ? undefined : parse(() => createPrivateKey({ key, ...(passphrase && { passphrase }) }));
  const isAuthority = ca === undefined || parse(() => certificatesIn(ca)).value?.length;
  const problems: ProblemAt[] = [];
  const add = (name: string, message: string, hint: string): void =>
    void problems.push({ pointer: `${place.pointer}/${name}`, message, hint });
  if (certificate?.code !== undefined)
    add('cert', 'is a file without a certificate', 'Use a PEM file that begins with “-----BEGIN CERTIFICATE-----”.');
  if (secret?.code !== undefined) add('key', ...describeKey(key ?? '', passphrase, place));
  if (!isAuthority)
    add(place.ca, 'is a file without certificates', 'Use a PEM file with the certificates of the authority.');
  if (problems.length > 0 || !certificate?.value || !secret?.value || cert === undefined || key === undefined)
    return problems;
  if (!certificate.value.checkPrivateKey(secret.value)) {
    add(
      'key',
      'does not belong to the certificate',
      'Use the key of the certificate. The gateway’s own certificate must be first in its file.',
    );
    return problems;
  }
  const whole = parse(() => createSecureContext({ cert, key, ca, ...(passphrase && { passphrase }) }));
  if (whole.code !== undefined) add('cert', `cannot be used (${whole.code})`, 'Use one that OpenSSL accepts.');
  return problems;
}

/** Returns the parsed value, or the code of the error: its message may show the text. */
function parse<T>(work: () => T): { readonly value?: T; readonly code?: string } {
  try {
    return { value: work() };
  } catch (error) {
    return { code: (error as NodeJS.ErrnoException).code ?? 'unknown' };
  }
}

function describeKey(
  key: string,
  passphrase: string | undefined,
  { pointer }: TlsPlace,
): [message: string, hint: string] {
  if (passphrase === undefined && key.includes('ENCRYPTED'))
    return ['is an encrypted key', `Set ${pointer.slice(1).replaceAll('/', '.')}.passphrase.`];
  return passphrase === undefined
    ? ['is a file without a private key', 'Use a PEM file that begins with “-----BEGIN PRIVATE KEY-----”.']
    : ['is a file without a private key, or the passphrase is wrong', 'Correct the file or the passphrase.'];
}

function certificatesIn(text: string): readonly X509Certificate[] {
  return (text.match(PEM) ?? []).map((part) => new X509Certificate(part));
}

/** Server certificate: the first one in the text. */
export function firstCertificate(text: string): X509Certificate {
  return new X509Certificate(text);
}
