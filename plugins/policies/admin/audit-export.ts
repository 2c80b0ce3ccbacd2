import { randomUUID } from 'node:crypto';
import type { AuditEntry, FromSchema, PluginApi } from '../../../contract/index.ts';
import { postJson, type Reply } from '../kit/deliveries.ts';
import { showEntry } from './audit-entry.ts';

/** Options that send the audit log to other systems. */
export const AUDIT_EXPORT = {
  type: 'object',
  additionalProperties: false,
  default: {},
  description: 'Sends each entry of the audit log to other systems, from the first start with this option on.',
  properties: {
    webhook: {
      type: 'object',
      additionalProperties: false,
      required: ['url', 'secret'],
      description: 'Receives POST requests with JSON lines, one entry each.',
      properties: {
        url: { type: 'string', format: 'url', secret: true, description: 'URL of the receiver.' },
        secret: {
          type: 'string',
          minLength: 16,
          secret: true,
          description: 'Key of the HMAC-SHA-256 in `x-tollgate-signature`.',
        },
      },
    },
    otlp: {
      type: 'object',
      additionalProperties: false,
      required: ['endpoint'],
      description: 'OpenTelemetry collector, by OTLP/HTTP with JSON; `/v1/logs` is appended.',
      properties: {
        endpoint: { type: 'string', format: 'url', description: 'Such as `http://127.0.0.1:4318`.' },
        headers: {
          type: 'object',
          additionalProperties: { type: 'string', secret: true },
          default: {},
          description: 'Headers, such as `authorization`.',
        },
      },
    },
  },
} as const;

type ExportOptions = FromSchema<typeof AUDIT_EXPORT>;

/** Progress of one receiver. */
interface Progress {
  /** Entries before this time have been sent, in Unix milliseconds. */
  readonly from: number;
  /** Ids of sent entries from then on. */
  readonly sent: readonly string[];
}

const EVERY_MS = 2000;
/** Another process takes over this long after the last look of the one that exports. */
const LEASE_MS = 15_000;
/** Clocks of nodes differ, so that an entry may have an earlier time than those that were sent before it. */
const OVERLAP_MS = 60_000;
const PAGE = 1000;
const BATCH = 100;
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 300_000;
const TIMEOUT_MS = 10_000;

interface Receiver {
  readonly name: string;
  /** Rejects, or returns a refusal, if the entries were not accepted. */
  send(entries: readonly AuditEntry[]): Promise<Reply>;
}

/**
 * Sends the entries of all processes of the store, commands included, to each receiver: in order, at least once, and none
 * is dropped. One process at a time exports; it stores its progress.
 */
export function startAuditExport(api: PluginApi, options: ExportOptions): void {
  const receivers = receiversOf(api, options);
  if (receivers.length === 0) return;
  const { id } = api.keep('audit-export', () => ({ id: randomUUID() }));
  const documents = api.keyv<Progress>('audit-export');
  const { counters } = api.stores;
  /** Pauses of receivers that failed. */
  const pauses = new Map<string, { readonly untilMs: number; readonly nextMs: number }>();

  const exportTo = async ({ name, send }: Receiver): Promise<void> => {
    const pause = pauses.get(name);
    if (pause && pause.untilMs > performance.now()) return;
    const known = await documents.get(name);
    const progress: Progress = known ?? { from: Date.now(), sent: [] };
    if (!known) await documents.set(name, progress);
    const sent = new Set(progress.sent);
    const waiting = (await readFrom(api, progress.from)).filter((entry) => !sent.has(entry.id));
    try {
      for (let at = 0; at < waiting.length; at += BATCH) {
        const batch = waiting.slice(at, at + BATCH);
        const { isTaken, said } = await send(batch);
        if (!isTaken) throw new Error(`the receiver rejected the entries: ${said}`);
        for (const entry of batch) sent.add(entry.id);
        const from = Math.max(progress.from, (batch.at(-1)?.at ?? 0) - OVERLAP_MS);
        await documents.set(name, { from, sent: [...sent].filter((each) => timeOfId(each) >= from) });
      }
      pauses.delete(name);
    } catch (error) {
      const pauseMs = pause?.nextMs ?? FIRST_PAUSE_MS;
      pauses.set(name, {
        untilMs: performance.now() + pauseMs,
        nextMs: Math.min(pauseMs * 2, LONGEST_PAUSE_MS),
      });
      api.log.warn({ receiver: name, err: error }, 'entries of the audit log were not accepted; retried later');
    }
  };

  let running: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    try {
      if (!(await counters.lease('audit-export', id, 1, LEASE_MS, Date.now()))) return;
      await Promise.all(receivers.map(exportTo));
    } catch (error) {
      api.log.debug({ err: error }, 'the audit log could not be read for its export');
    }
  };
  api.onReady(() => {
    const run = (): void => {
      running ??= look().finally(() => {
        running = undefined;
      });
    };
    const timer = setInterval(run, EVERY_MS);
    timer.unref();
    run();
    api.onClose(async () => {
      clearInterval(timer);
      await running;
      await counters.release('audit-export', id).catch(() => undefined);
    });
  });
}

/** Reads all entries from a time on, oldest first. */
async function readFrom({ operators }: Pick<PluginApi, 'operators'>, from: number): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (let after: string | undefined; ; ) {
    const page = await operators.auditLog({ from, limit: PAGE, ...(after !== undefined && { after }) });
    entries.push(...page.entries);
    after = page.next;
    if (after === undefined) return entries.reverse();
  }
}

/** Ids begin with their time in base 36. */
function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 9), 36);
}

function receiversOf(api: PluginApi, { webhook, otlp }: ExportOptions): readonly Receiver[] {
  const lines = (entries: readonly AuditEntry[]): string =>
    entries.map((entry) => `${JSON.stringify(showEntry(entry))}\n`).join('');
  return [
    ...(webhook
      ? [
          {
            name: 'webhook',
            send: (entries: readonly AuditEntry[]) => postJson(api, webhook, lines(entries), 'application/x-ndjson'),
          },
        ]
      : []),
    ...(otlp ? [{ name: 'otlp', send: (entries: readonly AuditEntry[]) => postLogs(api, otlp, entries) }] : []),
  ];
}

async function postLogs(
  api: PluginApi,
  { endpoint, headers }: NonNullable<ExportOptions['otlp']>,
  entries: readonly AuditEntry[],
): Promise<Reply> {
  const http = await api.http();
  const { statusCode } = await http.post(`${endpoint.replace(/\/+$/, '')}/v1/logs`, {
    json: logsOf(entries, api.settings.version),
    headers,
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: { request: TIMEOUT_MS },
  });
  return { isTaken: statusCode >= 200 && statusCode < 300, said: `status ${statusCode}` };
}

/** Log records of OTLP: https://opentelemetry.io/docs/specs/otel/logs/data-model/ */
function logsOf(entries: readonly AuditEntry[], version: string): object {
  const text = (key: string, value: string | undefined): readonly object[] =>
    value === undefined ? [] : [{ key, value: { stringValue: value } }];
  const logRecords = entries.map((entry) => ({
    timeUnixNano: `${entry.at}000000`,
    severityNumber: 9,
    severityText: 'INFO',
    eventName: 'tollgate.audit',
    body: { stringValue: JSON.stringify(showEntry(entry)) },
    attributes: [
      ...text('tollgate.audit.id', entry.id),
      ...text('tollgate.audit.action', entry.action),
      ...text('tollgate.audit.subject', entry.subject),
      ...text('tollgate.audit.via', entry.actor.via),
      ...text('user.id', entry.actor.userId),
      ...text('client.address', entry.actor.address),
    ],
  }));
  const attributes = [...text('service.name', 'tollgate'), ...text('service.version', version)];
  return {
    resourceLogs: [{ resource: { attributes }, scopeLogs: [{ scope: { name: 'tollgate.audit' }, logRecords }] }],
  };
}
