import assert from 'node:assert/strict';
import { type AnswerFeature, isGatewayError } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { SAMPLES } from './provider-samples.ts';
import { CALL, type Fixture, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** One row of the matrix that fixtures fill. */
export interface FixtureFeature<T> {
  readonly name: string;
  /** What a vendor that never shows it has among its `lacks`; a row without one every vendor must show. */
  readonly lack?: AnswerFeature;
  readonly shows: (read: T) => boolean;
}

/** The field that asks for what an answer may show: a vendor that lacks the one cannot take the other. */
const ASKED_WITH: Readonly<Partial<Record<AnswerFeature, string>>> = {
  'log probabilities': 'logprobs',
  'parallel tool calls': 'parallel_tool_calls',
  'tool calls': 'tools',
};

/**
 * Fills one cell from fixtures: `verified` by each that shows the feature, `not offered` where the provider's data says
 * that it lacks it and no fixture shows otherwise. A cell that would stay open is a failing test.
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
  // One that cannot be read shows nothing; the test of its shape says why.
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

/** A cell that says `not offered`, because the provider's data does; `holds` looks whether anything shows otherwise. */
export function testLack(subject: ProviderSubject, feature: string, lack: AnswerFeature, holds: () => void): void {
  const { it } = findRunner();
  itShows(it, { provider: subject.name, feature, says: 'not offered' }, `offers no ${feature}`, () => {
    assert.ok(lackOf(subject, lack)?.trim(), 'the reason is told');
    holds();
    const field = ASKED_WITH[lack];
    if (field !== undefined) assert.ok(isLeftOut(subject, field), `${field}, which asks for it, is dropped or refused`);
  });
}

/** A cell that nothing fills. */
export function testOpenCell({ name: provider }: ProviderSubject, feature: string, remedy: string): void {
  const { it } = findRunner();
  itShows(it, { provider, feature, says: 'verified' }, `shows ${feature}`, () => {
    assert.fail(`no fixture of ${provider} shows ${feature}: ${remedy}`);
  });
}

/** Why a provider's answers never show something; undefined when its data does not say so. */
export function lackOf({ provider }: ProviderSubject, lack: AnswerFeature): string | undefined {
  return provider.fields?.lacks?.[lack];
}

function isLeftOut({ provider: { chat } }: ProviderSubject, field: string): boolean {
  const { value, beside } = SAMPLES[field] ?? {};
  const messages = [{ role: 'user', content: 'Hello' }] as const;
  try {
    const sent = chat?.request({ model: CALL.model, messages, ...beside, [field]: value }, CALL);
    return sent?.dropped?.includes(field) ?? false;
  } catch (error) {
    // Where what it stands beside is refused, it is too.
    const refused = [field, ...Object.keys(beside ?? {})];
    return isGatewayError(error) && error.code === 'invalid_request' && refused.includes(error.param ?? '');
  }
}
