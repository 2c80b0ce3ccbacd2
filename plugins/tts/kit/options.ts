import { GatewayError, type ModelInfo, type Schema } from '../../../contract/index.ts';
import {
  type EndpointDefaults,
  PROVIDER_OPTIONS,
  type ProviderConfig,
  readProviderOptions,
} from '../../formats/kit/index.ts';
import type { SpeechProvider, Voice } from './types.ts';

/** Options of every speech vendor, for a plugin's `configSchema.properties`. */
export const SPEECH_OPTIONS = Object.freeze({
  ...PROVIDER_OPTIONS,
  voice: { type: 'string', minLength: 1, description: 'Default voice.' },
  voices: {
    type: 'array',
    items: { type: 'string', minLength: 1 },
    description: 'Replaces the voice list. `"*"` accepts every id; `"+id"` adds to the built-in list.',
  },
} as const satisfies Record<string, Schema>);

export interface SpeechConfig extends ProviderConfig {
  readonly voice?: string | undefined;
  readonly voices?: readonly string[] | undefined;
}

export interface SpeechDefaults extends EndpointDefaults {
  readonly models: readonly ModelInfo[];
  readonly voice: string;
  /** Absent if the vendor accepts any id. */
  readonly voices?: readonly Voice[];
}

/**
 * Configured half of a {@link SpeechProvider}: URL, keys, models, prices, timeouts and voices. `config` was validated
 * by a schema with {@link SPEECH_OPTIONS}. Without `voice`, the first of replaced `voices` is the default.
 */
export function readSpeechOptions(validated: object, defaults: SpeechDefaults) {
  const config: SpeechConfig = validated;
  const { models, ...endpoint } = readProviderOptions(config, defaults);
  return {
    specVersion: 1,
    ...endpoint,
    models: models ?? defaults.models,
    defaultVoice: config.voice ?? config.voices?.find((id) => !/^[*+]/.test(id)) ?? defaults.voice,
    ...readVoices(config.voices, defaults.voices),
  } satisfies Partial<SpeechProvider>;
}

/** Same grammar as `models`: `["*"]` accepts any id, `["a"]` replaces the list, `["+a"]` adds to it. */
function readVoices(
  ids: readonly string[] | undefined,
  builtIn: readonly Voice[] | undefined,
): Pick<SpeechProvider, 'voices' | 'acceptsVoice'> {
  const listed = ids ?? [];
  const voiceOf = (id: string): Voice => ({ id, name: id });
  const replacing = listed.filter((id) => id !== '*' && !id.startsWith('+')).map(voiceOf);
  const adding = listed.filter((id) => id.startsWith('+') && id.length > 1).map((id) => voiceOf(id.slice(1)));
  const base = replacing.length > 0 ? replacing : builtIn;
  return {
    ...(base && { voices: [...base, ...adding] }),
    ...(listed.includes('*') && { acceptsVoice: () => true }),
  };
}

/**
 * Selects the caller's `options` that a vendor supports. Any other is rejected by name: an unknown field could change
 * the bill or the destination of the sound, or have no effect.
 */
export function pickSpeechOptions<N extends string>(
  options: Readonly<Record<string, unknown>> | undefined,
  allowed: readonly N[],
): Partial<Record<N, unknown>> {
  for (const name of Object.keys(options ?? {})) {
    if ((allowed as readonly string[]).includes(name)) continue;
    const known = allowed.length > 0 ? `Supported: ${allowed.join(', ')}.` : 'It has no options.';
    throw new GatewayError('invalid_request', `This speech provider does not support the option. ${known}`, {
      param: `options.${name.slice(0, 64)}`,
    });
  }
  return { ...(options as Partial<Record<N, unknown>> | undefined) };
}
