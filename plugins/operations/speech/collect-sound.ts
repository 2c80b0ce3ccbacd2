import { GatewayError } from '../../../contract/index.ts';
import { mendWav, type SpeechResponse } from '../../tts/kit/index.ts';

/** About an hour of mp3, or eleven minutes of WAV at 44.1 kHz. */
const LONGEST_SOUND_BYTES = 64 * 1024 * 1024;

/** Reads the complete sound into memory, with true sizes in a WAV header. Throws `request_too_large` over 64 MiB. */
export async function collectSound(spoken: Pick<SpeechResponse, 'audio' | 'format'>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of spoken.audio) {
    length += bytes.length;
    if (length > LONGEST_SOUND_BYTES) {
      throw new GatewayError(
        'request_too_large',
        'The audio exceeds 64 MiB, the limit without streaming. Remove "stream" or shorten the text.',
        { param: 'text' },
      );
    }
    pieces.push(bytes);
  }
  const sound = Buffer.concat(pieces);
  return spoken.format === 'wav' ? mendWav(sound) : sound;
}
