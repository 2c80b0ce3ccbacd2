import {
  type Attempt,
  GatewayError,
  type HttpRequest,
  isObject,
  isStreamFailure,
  type Metered,
  type PluginApi,
  type RouteContext,
  type Schema,
} from '../../../contract/index.ts';
import type { BatchRequest, BatchResponse } from '../../formats/kit/index.ts';
import { heldOf, plannedFacts } from '../../policies/kit/index.ts';
import { type BatchRecord, type Checked, newId, ownerOf, type Records } from './records.ts';
import type { Settler } from './settle.ts';
import { vendorId, WIRES, wireOf, withQuery } from './wires.ts';

/** Duration of the reservation for a batch: a day for its vendor, and three to learn its result. */
const HOLD_MS = 4 * 86_400_000;

export const BATCH_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:BatchToBegin',
  type: 'object',
  required: ['model', 'ticket', 'requests', 'cost', 'heldUntil'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    ticket: { type: 'string' },
    requests: { type: 'integer', minimum: 1 },
    cost: { type: ['integer', 'null'], minimum: 0 },
    heldUntil: { type: 'integer' },
  },
});

/** Batch to create. */
export interface Begin {
  readonly checked: Checked;
  readonly input?: string;
  /** Request that creates it at the vendor. */
  readonly request: HttpRequest;
}

interface Ticket {
  readonly request: HttpRequest;
  /** True if the batch may already exist; it is then not sent again. */
  maybeSent: boolean;
}

/** Creates batches. Each is one call, whose reservation outlives it. */
export function createBeginning(
  api: Pick<PluginApi, 'models' | 'books' | 'log'>,
  records: Records,
  settler: Pick<Settler, 'send'>,
) {
  const tickets = new Map<string, Ticket>();

  const attempt = (work: Attempt<'batches'>): Promise<BatchResponse> =>
    sendOnce(work, tickets.get(work.request.ticket));

  const begin = async (ctx: RouteContext, batch: Begin): Promise<BatchRecord> => {
    const { principal, requestId, session, trace, signal, onOutcome } = ctx.state;
    const { provider, model, requested, cost, requests } = batch.checked;
    const ticket = newId('');
    tickets.set(ticket, { request: batch.request, maybeSent: false });
    const heldUntil = Date.now() + HOLD_MS;
    try {
      const wanted: BatchRequest = { model: requested, ticket, requests, cost, heldUntil };
      const context = {
        principal,
        requestId,
        session,
        trace,
        signal,
        onOutcome,
        targets: [{ provider, model }],
        requested,
      };
      const { response, headers } = await api.models.call('batches', wanted, context);
      const record = recordOf(ctx, batch, response, heldUntil);
      await keep(api, records, settler, record);
      ctx.set(headers);
      return record;
    } finally {
      tickets.delete(ticket);
    }
  };
  return { attempt, begin };
}

/** Sends the request that creates a batch, unless an earlier attempt may have created it. */
async function sendOnce(work: Attempt<'batches'>, ticket: Ticket | undefined): Promise<BatchResponse> {
  const { call, meter } = work;
  if (!ticket || ticket.maybeSent)
    throw new GatewayError(
      'provider_unavailable',
      'The connection to the provider was interrupted, so the batch may exist there. List your batches before you try again.',
    );
  let batch: unknown;
  try {
    batch = await work.sendForJson(withQuery(work.offer, ticket.request));
  } catch (error) {
    // An error status means that it was not created.
    ticket.maybeSent = !isStreamFailure(error);
    throw error;
  }
  ticket.maybeSent = true;
  meter({ units: {}, cost: 0 });
  if (!isObject(batch)) throw new GatewayError('provider_invalid_response', 'The provider returned no batch.');
  vendorId(WIRES[work.offer.wire].idOf(batch));
  const budgets = heldOf(call)?.budgets.map(({ id, until }) => ({ id, ...(until !== undefined && { until }) }));
  return { batch, callId: call.id, facts: plannedFacts(call, work.target), ...(budgets && { budgets }) };
}

/** Record of a created batch. */
function recordOf(
  ctx: RouteContext,
  { checked, input }: Begin,
  { batch, ...call }: BatchResponse,
  heldUntil: number,
): BatchRecord {
  const { principal } = ctx.state;
  const { held, ...summary } = checked;
  const wire = wireOf(summary.dialect);
  const owned = {
    owner: ownerOf(principal),
    account: principal.account,
    key: keyOf(ctx),
    provider: summary.provider,
    id: newId(wire.prefix),
    createdAt: Math.floor(Date.now() / 1000),
    vendor: vendorId(wire.idOf(batch)),
  };
  return {
    ...owned,
    checked: summary,
    batch: wire.stored?.(batch) ?? batch,
    ...call,
    heldUntil,
    held,
    ...(input !== undefined && { input }),
  };
}

/**
 * Stores a record. A batch without one could not be read, so it is cancelled. Its maximum cost stays reserved until
 * the sweeper charges it.
 */
async function keep(
  { log }: Pick<PluginApi, 'log'>,
  records: Records,
  settler: Pick<Settler, 'send'>,
  record: BatchRecord,
): Promise<void> {
  try {
    await records.batches.add(record);
    await records.opened(record.id);
  } catch (error) {
    const path = wireOf(record.checked.dialect).cancel(record.vendor);
    await settler
      .send(record.provider, { method: 'POST', path })
      .catch((err: unknown) =>
        log.error({ err }, 'a batch could neither be stored nor cancelled at the provider; cancel it there'),
      );
    throw error;
  }
}

/** Maximum cost of all requests; they do not count towards tokens per minute. */
export function estimateBatch({ requests, cost, heldUntil }: BatchRequest): Metered {
  return { units: { requests }, cost: cost ?? undefined, heldUntil };
}

/** Key of a request; rotated keys count as one. */
export function keyOf({ state: { principal } }: RouteContext): string {
  return principal.limitsId ?? principal.keyId ?? '-';
}
