const UNIT_BYTES: Readonly<Record<string, number>> = Object.freeze({ b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 });
const SIZE = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)$/i;

/** Bytes of `20mb`, `512kb` or a plain number of bytes (1kb = 1024); throws a TypeError that shows the forms. */
export function parseSize(size: string | number): number {
  if (typeof size === 'number') {
    if (Number.isSafeInteger(size) && size >= 0) return size;
  } else {
    const match = SIZE.exec(size.trim());
    const unit = UNIT_BYTES[match?.[2]?.toLowerCase() ?? ''];
    if (match && unit !== undefined) return Math.floor(Number(match[1]) * unit);
  }
  throw new TypeError(`"${size}" is not a size: write 20mb, 512kb or a number of bytes`);
}
