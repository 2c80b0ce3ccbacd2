import { createHash, randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type Command,
  definePlugin,
  type FromSchema,
  GatewayError,
  isLoopback,
  OptionError,
  type PluginApi,
  problemsOf,
} from '../../../contract/index.ts';
import { createDeliveries, postJson, type Reply } from '../kit/deliveries.ts';
import { isTimeZone, maxEntries } from '../kit/index.ts';
import { NOTICES, type NoticeType, type OperatorNotice, onNotice } from '../kit/notices.ts';
import { printable } from '../kit/printable.ts';
import { sendMail } from './mail.ts';
import { registerNetworks, watchNetworks } from './networks.ts';
import { startWatches } from './watches.ts';

const EVENTS = Object.freeze(Object.keys(NOTICES) as NoticeType[]);

/** `name@host`, optionally as `Name <name@host>`; on one line. */
const ADDRESS = { type: 'string', maxLength: 320, pattern: '^[^\\r\\n,;]*[^\\s<>,;]@[^\\s<>@,;]+>?$' } as const;

const RECEIVER = {
  type: 'object',
  additionalProperties: false,
  properties: {
    url: {
      type: 'string',
      format: 'url',
      secret: true,
      description:
        'URL that receives a POST. URLs of Slack and Teams let anyone who knows them write there; keep them secret.',
    },
    format: {
      enum: ['json', 'slack', 'teams'],
      description:
        '`json` (Tollgate’s format), `slack` (incoming webhooks) or `teams` (webhooks of Workflows, as an Adaptive Card). Default: `json`.',
    },
    secret: {
      type: 'string',
      minLength: 16,
      secret: true,
      description: 'Required for `json`: key of the HMAC-SHA-256 in `x-tollgate-signature`.',
    },
    smtp: {
      type: 'object',
      additionalProperties: false,
      required: ['host'],
      description: 'Mail server, instead of `url`.',
      properties: {
        host: { type: 'string', format: 'host', description: 'Host name.' },
        port: {
          type: 'integer',
          minimum: 1,
          maximum: 65535,
          default: 587,
          description: 'Port 465 uses TLS from the start. Other ports require STARTTLS, except on this machine.',
        },
        user: { type: 'string', minLength: 1, description: 'User for sign-in, with `password`.' },
        password: { type: 'string', minLength: 1, secret: true, description: 'Password of `user`.' },
        ca: {
          type: 'string',
          minLength: 1,
          description:
            'Trusted certificates in PEM instead of the default ones; use a reference to read them from a file.',
        },
      },
    },
    from: { ...ADDRESS, description: 'Sender, such as `Tollgate <gateway@example.com>`.' },
    to: { type: 'array', items: ADDRESS, minItems: 1, maxItems: 20, description: 'Recipients.' },
    events: {
      type: 'array',
      items: { enum: EVENTS },
      minItems: 1,
      uniqueItems: true,
      description: 'Types of notices. Default: all.',
    },
  },
} as const;

const CONFIG = {
  type: 'object',
  additionalProperties: false,
  properties: {
    receivers: {
      type: 'object',
      propertyNames: { pattern: '^[a-z0-9][a-z0-9._-]{0,40}$' },
      additionalProperties: RECEIVER,
      maxProperties: 20,
      default: {},
      description: 'Receivers of notices, by your own names. Without one, no notices are created.',
    },
    timezone: {
      type: 'string',
      default: 'UTC',
      description: 'Time zone of the days for `spend.unusual`, such as `Europe/Berlin`.',
    },
    unusualTimes: {
      type: 'number',
      minimum: 1.1,
      maximum: 1000,
      default: 2,
      description:
        'Factor for `spend.unusual`: today’s spend against the maximum of the same hours of this weekday in the last four weeks.',
    },
    unusualUsd: {
      type: 'number',
      minimum: 0,
      maximum: 1_000_000,
      default: 10,
      description: 'Minimum difference for `spend.unusual`, in US dollars.',
    },
  },
} as const;

type Receiver = FromSchema<typeof RECEIVER>;

/** Notice in delivery: the id is the same for every attempt, so that receivers can detect repeats. */
type Sent = Pick<OperatorNotice, 'text' | 'facts'> & {
  readonly type: NoticeType | 'test';
  readonly id: string;
  readonly created_at: string;
};

/**
 * Sends operators notices about targets, budgets, models, keys, reloads and spend: to webhooks, Slack, Teams, and by
 * mail. Each process checks its own state once a second; calls are not affected.
 */
export default definePlugin({
  name: 'notices',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['ledger', 'operators'],
  commands: [{ name: 'notices', summary: 'Send a test notice to each receiver' }],
  configSchema: CONFIG,
  check: ({ receivers, timezone }) =>
    problemsOf(
      () => checkTimeZone(timezone),
      ...Object.entries(receivers).map(
        ([name, receiver]) =>
          () =>
            checkReceiver(name, receiver),
      ),
    ),
  setup(api, { receivers, ...options }) {
    checkTimeZone(options.timezone);
    const all = Object.entries(receivers);
    for (const [name, receiver] of all) checkReceiver(name, receiver);
    api.command(noticesCommand(api, receivers));
    registerNetworks(api);
    if (all.length === 0) return;
    const isFirst = createOnce(api);
    const queues = all.map(([name, receiver]) => {
      const log = { receiver: `the receiver ${name} of notices` };
      // Waiting notices survive a reload.
      const queue = api.keep(
        `deliveries to ${name}`,
        () => createDeliveries(api.log, log),
        (kept) => kept.close(),
      );
      return { receiver, queue };
    });
    const tell = async (notice: OperatorNotice): Promise<void> => {
      const wanted = queues.filter(({ receiver: { events = EVENTS } }) => events.includes(notice.type));
      if (wanted.length === 0 || !(await isFirst(notice.cause, notice.rememberMs))) return;
      const sent = prepare(api, notice);
      for (const { receiver, queue } of wanted) queue.add(notice.type, () => sendTo(api, receiver, sent));
    };
    onNotice(api, (notice) => void tell(notice));
    const wanted = new Set(all.flatMap(([, { events = EVENTS }]) => events));
    if (wanted.has('key.new_network')) watchNetworks(api, tell);
    api.onReady(() => startWatches(api, { ...options, wanted, isFirst, tell }));
  },
});

function checkTimeZone(timezone: string): void {
  if (!isTimeZone(timezone))
    throw new OptionError('/timezone', 'is not a time zone', 'Use a name such as Europe/Berlin, or UTC.');
}

/** Checks a receiver beyond the schema. */
function checkReceiver(name: string, receiver: Receiver): void {
  const at = `/receivers/${name}`;
  const { url, smtp } = receiver;
  if ((url === undefined) === (smtp === undefined))
    throw new OptionError(
      at,
      url === undefined ? 'has neither url nor smtp' : 'has both url and smtp',
      'Set `url` for a webhook, or `smtp: { host }` for a mail server.',
    );
  if (url !== undefined) checkWebhook(at, url, receiver);
  if (smtp !== undefined) checkMail(at, smtp, receiver);
}

function checkWebhook(at: string, url: string, { format = 'json', secret, from, to }: Receiver): void {
  const { protocol, hostname, username, password } = new URL(url);
  if (from !== undefined || to !== undefined)
    throw new OptionError(
      at,
      'has `from` or `to`, which are only for mail',
      'Remove them, or set `smtp` instead of `url`.',
    );
  if (username !== '' || password !== '')
    throw new OptionError(`${at}/url`, 'contains a user or password', 'Remove them; json is signed with `secret`.');
  if (format === 'json' && secret === undefined)
    throw new OptionError(
      at,
      'has no secret, so the receiver cannot verify notices',
      'Set `secret` (at least 16 characters) from an environment variable, or set format: slack or teams.',
    );
  if (format !== 'json' && secret !== undefined)
    throw new OptionError(`${at}/secret`, `is not used, since ${format} does not check signatures`, 'Remove it.');
  if (format !== 'json' && protocol !== 'https:' && !isLoopback(hostname))
    throw new OptionError(
      `${at}/url`,
      'is not an https URL',
      'Use https, since anyone who reads the URL could write there.',
    );
}

function checkMail(at: string, smtp: NonNullable<Receiver['smtp']>, { format, secret, from, to }: Receiver): void {
  if (format !== undefined || secret !== undefined)
    throw new OptionError(at, 'has a format or a secret, which are only for webhooks', 'Remove them.');
  const missing = from === undefined ? 'from' : to === undefined ? 'to' : undefined;
  if (missing !== undefined)
    throw new OptionError(at, `has no \`${missing}\``, 'Set from: gateway@example.com and to: [ops@example.com].');
  if ((smtp.user === undefined) !== (smtp.password === undefined))
    throw new OptionError(`${at}/smtp`, 'has only one of user and password', 'Set both or remove both.');
}

/** Sends a notice to a receiver, once; rejects if a retry may help. */
function sendTo(
  api: Pick<PluginApi, 'http'>,
  { url, format = 'json', secret, smtp, from = '', to = [] }: Receiver,
  sent: Sent,
): Promise<Reply> {
  if (smtp === undefined) return postJson(api, { url: url ?? '', secret }, JSON.stringify(FORMS[format](sent)));
  const text = [`${sent.text}.`, '', ...rowsOf(sent).map(([name, value]) => `${name}: ${value}`), ''].join('\n');
  return sendMail(smtp, isLoopback(smtp.host), { from, to, subject: `[Tollgate] ${sent.text}`, text, id: sent.id });
}

/** Number of sent notices that a process remembers by itself. */
const LOCAL = maxEntries(5000);

/**
 * Creates a test for first occurrences of a cause: `true` once over all processes of the store within the time. If the
 * store is unavailable, each process sends its own notice, since a duplicate is better than a loss.
 */
function createOnce(api: Pick<PluginApi, 'keep' | 'log' | 'stores'>) {
  const { id, sent } = api.keep('sent', () => ({ id: randomUUID(), sent: new LRUCache<string, true>(LOCAL) }));
  return async (cause: string, rememberMs: number): Promise<boolean> => {
    const key = createHash('sha256').update(cause).digest('hex').slice(0, 32);
    if (sent.has(key)) return false;
    sent.set(key, true, { ttl: rememberMs });
    try {
      return await api.stores.counters.lease(`sent.${key}`, id, 1, rememberMs, Date.now());
    } catch (error) {
      api.log.warn({ err: error }, 'the store does not respond; other processes may send the same notice');
      return true;
    }
  };
}

/** Longest text of a notice, and of one of its facts. */
const MAX_TEXT = 500;

/** Prepares a notice for receivers: one line per text, without secrets or control characters. */
function prepare(
  { redact }: Pick<PluginApi, 'redact'>,
  { type, text, facts }: Pick<Sent, 'type' | 'text' | 'facts'>,
): Sent {
  // The public prefix of a key looks like a credential, but is the subject of the notice.
  const isOfKey = typeof facts['key'] === 'string';
  const clean = (value: string): string => printable(isOfKey ? value : redact(value), MAX_TEXT);
  return {
    type,
    id: randomUUID(),
    created_at: new Date().toISOString(),
    text: clean(text),
    facts: Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, value && clean(value)])),
  };
}

/** Body of a notice in each format. */
const FORMS: { readonly [Format in NonNullable<Receiver['format']>]: (sent: Sent) => object } = Object.freeze({
  json: ({ facts, id, created_at, type, text }: Sent) => ({
    id,
    created_at,
    type,
    text,
    ...facts,
  }),
  // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/: notifications show `text`; a section
  // has up to ten fields of 2,000 characters.
  slack: (sent: Sent) => ({
    text: escapeSlack(sent.text),
    blocks: [
      { type: 'section', text: slackText(`*${escapeSlack(sent.text)}*`) },
      {
        type: 'section',
        fields: rowsOf(sent)
          .slice(0, 10)
          .map(([name, value]) => slackText(`*${name}*\n${escapeSlack(value)}`)),
      },
    ],
  }),
  // https://learn.microsoft.com/en-us/connectors/teams/#microsoft-teams-webhook. Names come from callers: a TextRun,
  // unlike a TextBlock or a FactSet, does not interpret Markdown
  // (https://learn.microsoft.com/en-us/adaptive-cards/schema-explorer/text-run).
  teams: (sent: Sent) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            { type: 'RichTextBlock', inlines: [{ ...textRun(sent.text), size: 'Medium', weight: 'Bolder' }] },
            ...rowsOf(sent).map(([name, value]) => ({
              type: 'RichTextBlock',
              spacing: 'Small',
              inlines: [{ ...textRun(`${name}: `), isSubtle: true }, textRun(value)],
            })),
          ],
        },
      },
    ],
  }),
});

/** Known facts as labelled rows. */
function rowsOf({ type, facts, created_at }: Sent): readonly (readonly [name: string, value: string])[] {
  const known = Object.entries(facts).flatMap(([name, value]) =>
    value === null ? [] : [[name.replaceAll('_', ' '), value] as const],
  );
  return [['event', type], ...known.slice(0, 8), ['at', created_at]];
}

function slackText(text: string): object {
  return { type: 'mrkdwn', verbatim: true, text };
}

/**
 * Escapes the three characters that Slack reads as control sequences:
 * https://docs.slack.dev/messaging/formatting-message-text/#escaping
 */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function textRun(text: string): object {
  return { type: 'TextRun', text };
}

const EXIT_UNAVAILABLE = 69;

/** `tollgate config notices test`: sends a notice to each receiver once, and prints the replies. */
function noticesCommand(api: PluginApi, receivers: Readonly<Record<string, Receiver>>): Command {
  return {
    name: 'notices',
    summary: 'Send a test notice to each receiver',
    changesStore: false,
    subcommands: [
      {
        name: 'test',
        summary: 'Send a test notice to each receiver and show the response; exit code 69 if one rejects it',
        args: [{ name: '[receiver]', summary: 'only this receiver, by its name in the configuration' }],
        async run({ args: [only], io }) {
          const names = namesOf(receivers, only);
          const rows = [];
          for (const name of names)
            rows.push({ receiver: name, ...(await sendTest(api, receivers[name] as Receiver)) });
          const table = rows.map(({ receiver, taken, said }) => [receiver, taken ? 'taken' : 'rejected', said]);
          io.result(rows, io.table(['RECEIVER', 'NOTICE', 'RESPONSE'], table));
          return rows.every(({ taken }) => taken) ? 0 : EXIT_UNAVAILABLE;
        },
      },
    ],
  };
}

function namesOf(receivers: Readonly<Record<string, Receiver>>, only: string | undefined): readonly string[] {
  const names = Object.keys(receivers);
  if (names.length === 0)
    throw new GatewayError(
      'invalid_request',
      'the configuration has no receivers of notices\nAdd one to policies.notices.receivers; docs/plugins/notices.md has examples.',
    );
  if (only === undefined) return names;
  if (Object.hasOwn(receivers, only)) return [only];
  throw new GatewayError(
    'invalid_request',
    `receiver "${printable(only)}" not found in policies.notices.receivers\nUse one of ${names.join(', ')}.`,
  );
}

async function sendTest(api: PluginApi, receiver: Receiver): Promise<{ taken: boolean; said: string }> {
  const text = 'Test notice of Tollgate; no action needed';
  const sent = prepare(api, { type: 'test', text, facts: { gateway: api.settings.url } });
  try {
    const { isTaken, said } = await sendTo(api, receiver, sent);
    return { taken: isTaken, said };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { taken: false, said: printable(api.redact(code === undefined ? message : `${code}: ${message}`), 200) };
  }
}
