/** `tollgate/speech`: what codecs of speech vendors share. A kit is a library for plugins, never a plugin itself. */

export type { SpeechConfig, SpeechDefaults } from './options.ts';
export { pickSpeechOptions, readSpeechOptions, SPEECH_OPTIONS } from './options.ts';
export { primaryLanguage, readVoice } from './voices.ts';
