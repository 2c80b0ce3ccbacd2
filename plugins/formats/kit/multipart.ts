import { createHash } from 'node:crypto';

/** File of a form, with its bytes. */
export interface FormFile {
  readonly field: string;
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/**
 * Builds a `multipart/form-data` body. `id` is unique and unknown to callers, so that no file can end its part. File
 * names are reduced to characters that every parser reads alike. Their extension stays, because vendors read the type
 * from it. Source: https://www.rfc-editor.org/rfc/rfc7578
 */
export function multipartBody(
  fields: readonly (readonly [name: string, value: string])[],
  files: readonly FormFile[],
  id: string,
): { readonly headers: Readonly<Record<string, string>>; readonly body: Uint8Array } {
  const boundary = `tollgate-${createHash('sha256').update(id).digest('hex').slice(0, 40)}`;
  const parts: Uint8Array[] = [];
  const add = (text: string): void => void parts.push(Buffer.from(text));
  for (const [name, value] of fields)
    add(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
  for (const { field, name, contentType, bytes } of files) {
    const type = /^[\w.+-]+\/[\w.+-]+$/.test(contentType) ? contentType : 'application/octet-stream';
    add(
      `--${boundary}\r\ncontent-disposition: form-data; name="${field}"; filename="${plainName(name)}"\r\ncontent-type: ${type}\r\n\r\n`,
    );
    parts.push(bytes);
    add('\r\n');
  }
  add(`--${boundary}--\r\n`);
  return { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body: Buffer.concat(parts) };
}

function plainName(name: string): string {
  const plain = name.replace(/[^\w.-]+/g, '_').slice(-80);
  return plain === '' ? 'file' : plain;
}
