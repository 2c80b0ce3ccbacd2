/** MPEG audio frame headers (ISO 11172-3, 13818-3), limited to lengths and durations. */

const KBPS_V1_L3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const KBPS_V2_L3 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const RATES = [44_100, 48_000, 32_000];
/** Divides {@link RATES} by the two version bits: MPEG 2.5, reserved, 2, 1. */
const RATE_DIVISOR = [4, 0, 2, 1];

export interface Mp3Frame {
  readonly bytes: number;
  readonly seconds: number;
}

/** Reads the layer III frame whose four header bytes are at the beginning; undefined without one. */
export function readMp3Frame(bytes: Buffer): Mp3Frame | undefined {
  if (bytes.length < 4) return undefined;
  const header = bytes.readUInt32BE(0);
  if (header >>> 21 !== 0x7ff || ((header >>> 17) & 3) !== 1) return undefined;
  const version = (header >>> 19) & 3;
  const divisor = RATE_DIVISOR[version] ?? 0;
  const rate = (RATES[(header >>> 10) & 3] ?? 0) / divisor;
  const first = version === 3;
  const kbps = (first ? KBPS_V1_L3 : KBPS_V2_L3)[(header >>> 12) & 15] ?? 0;
  if (!Number.isFinite(rate) || rate === 0 || kbps === 0) return undefined;
  const samples = first ? 1152 : 576;
  const padding = (header >>> 9) & 1;
  return { bytes: Math.floor((samples / 8) * ((kbps * 1000) / rate)) + padding, seconds: samples / rate };
}

/** Length of an ID3v2 tag at the beginning; 0 without one. Needs ten bytes. */
export function id3Length(bytes: Buffer): number {
  if (bytes.length < 10 || bytes.toString('latin1', 0, 3) !== 'ID3') return 0;
  const sevenBit = (at: number) => (bytes[at] ?? 0) & 0x7f;
  const size = (sevenBit(6) << 21) | (sevenBit(7) << 14) | (sevenBit(8) << 7) | sevenBit(9);
  const footer = ((bytes[5] ?? 0) & 0x10) !== 0 ? 10 : 0;
  return 10 + size + footer;
}

/**
 * Returns true for a frame with only an encoder's table of the file's length (Xing, Info), which joining invalidates.
 */
export function isLengthTable(frame: Buffer): boolean {
  const head = frame.toString('latin1', 0, 48);
  return head.includes('Xing') || head.includes('Info');
}
