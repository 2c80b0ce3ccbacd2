/**
 * `tollgate/speech`: shared code of plugins for speech. A kit is a library for plugins, never a plugin itself.
 *
 * @public
 */

export { checkApiKeys } from '../../formats/kit/index.ts';
export { convertPcm, mendWavHeader, unwrapWav } from './audio/convert.ts';
export { decodeEventSound, decodeJsonSound, decodeSound, type EventSound, type JsonSound } from './audio/decoders.ts';
export { AUDIO_FORMATS, PCM_RATE } from './audio/formats.ts';
export { createSoundJoin, type SoundJoin } from './audio/join.ts';
export { createSoundCheck, type SoundCheck } from './audio/sound-check.ts';
export { mendWav } from './audio/wav.ts';
export { createVoiceLister, primaryLanguage, readVoice, type VoiceList } from './list-voices.ts';
export type { SpeechConfig, SpeechDefaults } from './options.ts';
export { pickSpeechOptions, readSpeechOptions, SPEECH_OPTIONS } from './options.ts';
export { countCharacters, splitText } from './split-text.ts';
export type * from './types.ts';
