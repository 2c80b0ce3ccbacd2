import type { RawConfig } from './read.ts';

/** A configuration as it was read, as text: for another process that is to have the very same one. */
export function writeRawConfig({ positions, texts, ...rest }: RawConfig): string {
  return JSON.stringify({ ...rest, positions: [...positions], texts: [...texts] });
}

/** The configuration that {@link writeRawConfig} wrote. */
export function parseRawConfig(text: string): RawConfig {
  const { positions, texts, ...rest } = JSON.parse(text) as Written;
  return Object.freeze({ ...rest, positions: new Map(positions), texts: new Map(texts) });
}

type Written = Omit<RawConfig, 'positions' | 'texts'> & {
  readonly positions: Iterable<readonly [string, ReturnType<RawConfig['positions']['get']> & object]>;
  readonly texts: Iterable<readonly [string, string]>;
};
