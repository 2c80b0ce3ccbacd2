import { readString } from '../../../core/index.ts';
import type { Voice } from './types.ts';

/** The language of a BCP 47 tag without its script and region, in lower case: `pt-BR` gives `pt`. */
export function primaryLanguage(tag: string): string {
  return (tag.split('-')[0] ?? tag).toLowerCase();
}

/**
 * One row of a vendor's voice list, for `flatMap`: nothing without an id that is a text; a voice without a name is called
 * by its id. Never throws, whatever the vendor sent.
 */
export function readVoice(id: unknown, name: unknown, language: unknown): readonly Voice[] {
  const voiceId = readString(id);
  const spoken = readString(language);
  if (voiceId === undefined) return [];
  return [{ id: voiceId, name: readString(name) ?? voiceId, ...(spoken !== undefined && { language: spoken }) }];
}
