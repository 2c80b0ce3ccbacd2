import type { FieldRule, FieldTable } from '../../../core/index.ts';
import { LEGACY_FUNCTIONS } from '../kit/index.ts';
import { TOOL_IDS } from './messages.ts';
import type { Differences } from './spec.ts';

/** What the codec does with each field, as docs and tests read it: the vendor's rules, and what follows from its other data. */
export function fieldTable(differences: Differences): FieldTable {
  const { fields = {}, variants, unknown = 'passed', extras, lacks, notes } = differences;
  return {
    fields: {
      ...LEGACY_FUNCTIONS,
      messages: messagesRule(differences),
      stream_options: streamRule(differences),
      ...fields,
    },
    unknown,
    ...(variants && {
      variants: variants.map(({ when, example, fields: own = {}, roles }) => ({
        when,
        example,
        fields: { ...(roles && { messages: messagesRule({ ...differences, roles }) }), ...own },
      })),
    }),
    ...(extras && { extras }),
    ...(lacks && { lacks }),
    ...(notes && { notes }),
  };
}

function messagesRule({ roles = {}, replay = 'drop', toolIds = TOOL_IDS, cacheMarks }: Differences): FieldRule {
  const notes = [
    roles.developer === 'system' && '`developer` becomes `system`',
    roles.system === 'developer' && '`system` becomes `developer`',
    replay === 'drop' ? 'earlier thinking stays behind' : `earlier thinking goes back as \`${replay}\``,
    `a tool call id that is not \`${toolIds.valid.source}\` becomes a hash of ${toolIds.length} characters, in the call and in its result`,
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
