import { GatewayError } from '../../../core/index.ts';
import { mendWav, type SpeechAnswer } from '../../tts/kit/index.ts';

/** About an hour of mp3, or eleven minutes of WAV at 44.1 kHz. */
const LONGEST_SOUND_BYTES = 64 * 1024 * 1024;

/** The whole sound in memory, a WAV with its true sizes. Throws `request_too_large` over 64 MiB. */
export async function collectSound(answer: Pick<SpeechAnswer, 'audio' | 'format'>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of answer.audio) {
    length += bytes.length;
    if (length > LONGEST_SOUND_BYTES) {
      throw new GatewayError(
        'request_too_large',
        'The sound is longer than 64 MiB, which is the most that is sent in one piece: leave "stream" out, or shorten text.',
        { param: 'text' },
      );
    }
    pieces.push(bytes);
  }
  const sound = Buffer.concat(pieces);
  return answer.format === 'wav' ? mendWav(sound) : sound;
}
