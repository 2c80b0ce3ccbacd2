import assert from 'node:assert/strict';
import { type AnswerFeature, isGatewayError } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { SAMPLES } from './provider-samples.ts';
import { CALL, type Fixture, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** Row of the matrix that fixtures fill. */
export interface FixtureFeature<T> {
  readonly name: string;
  /** Name in `lacks` of a vendor that never shows the feature. A row without a name is mandatory. */
  readonly lack?: AnswerFeature;
  readonly shows: (read: T) => boolean;
}

/** Field that requests a feature: a vendor that lacks the feature cannot accept the field. */
const REQUEST_FIELD: Readonly<Partial<Record<AnswerFeature, string>>> = {
  'log probabilities': 'logprobs',
  'parallel tool calls': 'parallel_tool_calls',
  'tool calls': 'tools',
};

/**
 * Fills one cell from fixtures: `verified` by each fixture with the feature, `not offered` if the provider's data lists
 * it in `lacks` and no fixture disproves it. An empty cell is a failing test.
 */
export function testFixtureFeature<T>(
  subject: ProviderSubject,
  { name: feature, lack, shows }: FixtureFeature<T>,
  { files, fixtures, read }: { files: string; fixtures: readonly Fixture[]; read: (fixture: Fixture) => T },
): void {
  const { it } = findRunner();
  const { name: provider } = subject;
  if (lack !== undefined && lackOf(subject, lack) !== undefined) {
    testLack(subject, feature, lack, () => {
      for (const fixture of fixtures) assert.ok(!shows(read(fixture)), `${fixture.name} shows ${feature}`);
    });
    return;
  }
  // An unreadable fixture shows nothing; the test of its shape reports the reason.
  const showing = fixtures.filter((fixture) => doesShow(() => shows(read(fixture))));
  for (const fixture of showing) {
    itShows(it, { provider, feature, says: 'verified' }, `shows ${feature}: ${fixture.name}`, () => {
      assert.ok(shows(read(fixture)));
    });
  }
  const orSay =
    lack === undefined ? '' : `, or say in \`lacks\` of the provider’s data why its answers have no ${lack}`;
  if (showing.length === 0) testOpenCell(subject, feature, `put one that does into ${files}${orSay}`);
}

function doesShow(shows: () => boolean): boolean {
  try {
    return shows();
  } catch {
    return false;
  }
}

/** Registers a `not offered` cell according to the provider's data; `holds` fails if a fixture shows the feature. */
export function testLack(subject: ProviderSubject, feature: string, lack: AnswerFeature, holds: () => void): void {
  const { it } = findRunner();
  itShows(it, { provider: subject.name, feature, says: 'not offered' }, `offers no ${feature}`, () => {
    assert.ok(lackOf(subject, lack)?.trim(), 'the reason is given');
    holds();
    const field = REQUEST_FIELD[lack];
    if (field !== undefined) assert.ok(isOmitted(subject, field), `${field}, which asks for it, is dropped or refused`);
  });
}

/** Registers a failing test for an empty cell. */
export function testOpenCell({ name: provider }: ProviderSubject, feature: string, remedy: string): void {
  const { it } = findRunner();
  itShows(it, { provider, feature, says: 'verified' }, `shows ${feature}`, () => {
    assert.fail(`no fixture of ${provider} shows ${feature}: ${remedy}`);
  });
}

/** Reason why a provider's responses never show a feature; undefined if its data lists none. */
export function lackOf({ provider }: ProviderSubject, lack: AnswerFeature): string | undefined {
  return provider.fields?.lacks?.[lack];
}

function isOmitted({ provider: { chat } }: ProviderSubject, field: string): boolean {
  const { value, requires: parallel } = SAMPLES[field] ?? {};
  const messages = [{ role: 'user', content: 'Hello' }] as const;
  try {
    const sent = chat?.request({ model: CALL.model, messages, ...parallel, [field]: value }, CALL);
    return sent?.dropped?.includes(field) ?? false;
  } catch (error) {
    // A field is also refused if a field that it requires is refused.
    const refused = [field, ...Object.keys(parallel ?? {})];
    return isGatewayError(error) && error.code === 'invalid_request' && refused.includes(error.param ?? '');
  }
}
