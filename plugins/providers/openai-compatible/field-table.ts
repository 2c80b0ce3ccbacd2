import type { FieldRule, FieldTable } from '../../../core/index.ts';
import type { Differences } from './spec.ts';

/** What the codec does with each field, as docs and tests read it: the vendor's rules, and what follows from its other data. */
export function fieldTable(differences: Differences): FieldTable {
  const { fields = {}, variants, unknown = 'passed', extras } = differences;
  return {
    fields: { messages: messagesRule(differences), stream_options: streamRule(differences), ...fields },
    unknown,
    ...(variants && {
      variants: variants.map(({ when, example, fields: own = {}, roles }) => ({
        when,
        example,
        fields: { ...(roles && { messages: messagesRule({ ...differences, roles }) }), ...own },
      })),
    }),
    ...(extras && { extras }),
  };
}

function messagesRule({ roles = {}, replay = 'drop', toolIds, cacheMarks }: Differences): FieldRule {
  const notes = [
    roles.developer === 'system' && '`developer` becomes `system`',
    roles.system === 'developer' && '`system` becomes `developer`',
    replay === 'drop' ? 'earlier thinking stays behind' : `earlier thinking goes back as \`${replay}\``,
    toolIds && `tool call ids that are no ${toolIds.length} characters get a hash of that length`,
    !cacheMarks && '`cache_control` stays behind',
  ];
  return { rule: 'passed', note: `${notes.filter(Boolean).join('; ')}.` };
}

function streamRule({ streamUsage = 'ask', streamOptions }: Differences): FieldRule {
  if (streamUsage === 'always')
    return { rule: 'emulated', note: 'Not sent: usage always comes. Callers see it when they ask.' };
  const own = streamOptions ? `, and \`${JSON.stringify(streamOptions)}\`` : '';
  return { rule: 'passed', note: `Usage is always asked for${own}. Callers see it when they ask.` };
}
