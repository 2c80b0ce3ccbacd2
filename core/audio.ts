/** Tools for the codecs of speech vendors: decoders of the forms sound comes in, and conversions between them. */
export { convertPcm, mendWavHeader, unwrapWav } from './audio/convert.ts';
export { decodeEventSound, decodeJsonSound, decodeSound, type EventSound, type JsonSound } from './audio/decoders.ts';
export { AUDIO_FORMATS, PCM_RATE } from './audio/formats.ts';
