import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { type FieldRule, parseJson, readArray, readObject } from '../../contract/index.ts';
import { SAMPLES } from './provider-samples.ts';
import { CALL, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** Fields with their own code, which other tests cover. */
const OWN: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'stream_options']);

/** Values for vendors' own fields that the vendor's codec inspects; any other field gets a word. */
export const OWN_SAMPLES: Readonly<Record<string, unknown>> = Object.freeze({
  betas: ['context-management-2025-06-27'],
  cache_control: { type: 'ephemeral' },
  cached_content: 'cachedContents/abc',
  context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
  media_resolution: 'MEDIA_RESOLUTION_LOW',
  metadata: { user_id: 'user-1' },
  output_config: { effort: 'low' },
  safety_settings: [{ category: 'HARM_CATEGORY_HATE_SPEECH', threshold: 'OFF' }],
  stop_sequences: ['END'],
  thinking: { type: 'disabled' },
  thinking_config: { thinking_budget: 0 },
  top_k: 5,
});

/**
 * Checks the codec against the vendor's published schema, the fixture `published-fields.json`: `{ source, date, chat:
 * [names] }`. A field of the vendor is sent, or the field table has a note with the reason. An omitted field is
 * reported.
 */
export function testPublishedFields({ provider: { chat, fields: table }, fixtures }: ProviderSubject): void {
  const { describe, it } = findRunner();
  const [published] = fixtures('published-fields', '.json');
  if (!chat || !table || !published) return;
  const names = readArray(readObject(parseJson(published.text))['chat']).filter((name) => typeof name === 'string');
  const messages = [{ role: 'user', content: 'Hello' }] as const;
  const translate = (fields: object, model = CALL.model) =>
    chat.request({ model, messages, ...fields }, { ...CALL, model });
  // At least one model must accept a field.
  const models = [CALL.model, ...(table.variants ?? []).map(({ example }) => example.model)];
  const isSent = (model: string, parallel: object, field: object): boolean => {
    try {
      const [{ body, headers, dropped = [] }, without] = [
        translate({ ...parallel, ...field }, model),
        translate(parallel, model),
      ];
      const isDropped = dropped.some((name) => name in field);
      return !isDropped && !isDeepStrictEqual([body, headers], [without.body, without.headers]);
    } catch {
      return false;
    }
  };

  describe('a field of the vendor’s published schema', () => {
    it('has a source and a date', () => {
      const { source, date } = readObject(parseJson(published.text));
      assert.ok(typeof source === 'string' && typeof date === 'string' && names.length > 0);
    });

    for (const field of names) {
      if (OWN.has(field)) continue;
      it(`is sent, or the table has the reason why not: ${field}`, () => {
        const rule = table.fields[field];
        if (rule?.rule === 'refused' || rule?.rule === 'emulated') return assertReason(field, rule);
        const sample = SAMPLES[field];
        const parallel = sample?.requires ?? {};
        const value = OWN_SAMPLES[field] ?? sample?.value ?? 'sample';
        if (models.some((model) => isSent(model, parallel, { [field]: value }))) return;
        const { body, headers, dropped = [] } = translate({ ...parallel, [field]: value });
        if (dropped.includes(field)) return assertReason(field, rule);
        const without = translate(parallel);
        assert.notDeepEqual([body, headers], [without.body, without.headers], `${field} is neither sent nor reported`);
      });
    }
  });
}

function assertReason(field: string, rule: FieldRule | undefined): void {
  assert.ok(rule?.note, `the vendor has \`${field}\`, and no note of the field table says why it is not sent`);
}
