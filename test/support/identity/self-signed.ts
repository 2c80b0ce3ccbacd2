import { createHash, generateKeyPairSync, sign } from 'node:crypto';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export interface CertificateOptions {
  readonly expired?: boolean;
  /** Subject name; several certificates trusted by one client need different names. */
  readonly subject?: string;
  /** Uses an RSA key, which some clients require. */
  readonly isRsa?: boolean;
  /** Encrypts the key. */
  readonly passphrase?: string;
}

/**
 * Self-signed certificate for `localhost`, valid for a day (or until yesterday), so that no key is in the repository.
 */
export function createSelfSigned(options: CertificateOptions = {}): Certificate {
  const { privateKey, publicKey } = options.isRsa
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { passphrase, subject = 'localhost' } = options;
  const dayMs = 86_400_000;
  const end = Date.now() + (options.expired ? -dayMs : dayMs);
  const algorithm = options.isRsa
    ? der(0x30, oid('1.2.840.113549.1.1.11'), der(0x05))
    : der(0x30, oid('1.2.840.10045.4.3.2'));
  const name = der(0x30, der(0x31, der(0x30, oid('2.5.4.3'), der(0x0c, Buffer.from(subject)))));
  const validity = der(0x30, time(end - 2 * dayMs), time(end));
  const extensions = der(
    0xa3,
    der(
      0x30,
      extension('2.5.29.17', der(0x30, der(0x82, Buffer.from('localhost')))),
      extension('2.5.29.19', der(0x30, der(0x01, Buffer.from([0xff])))),
    ),
  );
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const serial = createHash('sha256').update(spki).digest().subarray(0, 8);
  serial[0] = 1;
  const version = der(0xa0, der(0x02, Buffer.from([2])));
  const body = der(0x30, version, der(0x02, serial), algorithm, name, validity, name, spki, extensions);
  const signature = sign('sha256', body, privateKey);
  const certificate = der(0x30, body, algorithm, der(0x03, Buffer.from([0]), signature));
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return {
    key: privateKey
      .export({ type: 'pkcs8', format: 'pem', ...(passphrase !== undefined && { cipher: 'aes-256-cbc', passphrase }) })
      .toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const digits = [part & 127];
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 127) | 128);
    bytes.push(...digits);
  }
  return der(0x06, Buffer.from(bytes));
}

function time(ms: number): Buffer {
  return der(0x18, Buffer.from(`${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`));
}

function extension(id: string, value: Buffer): Buffer {
  return der(0x30, oid(id), der(0x04, value));
}
