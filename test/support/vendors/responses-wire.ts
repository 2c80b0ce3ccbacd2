/** Responses of a vendor with OpenAI's Responses API: as JSON, or as the events of a stream. */
import { type IngressRig, sayScript, type Wire } from '../gateways/ingress-rig.ts';
import { chunk, LAST_CHUNK, respondWith, type Script, SSE_HEAD } from './scripted-upstream.ts';
import type { Piece, ScriptedOutput } from './vendor-wires.ts';

type Item = Readonly<Record<string, unknown>>;

/** Features of this format only: the vendor's own encryption of its reasoning, items of its own tools. */
export interface SaidNatively extends ScriptedOutput {
  readonly encrypted?: string;
  /** Items before all others. */
  readonly items?: readonly Item[];
  /** Request fields that the vendor's response repeats. */
  readonly echo?: Item;
  /** Names of tools whose input is plain text. */
  readonly custom?: readonly string[];
  /** Namespace of tools that other vendors name `<namespace>__<name>`. */
  readonly namespace?: string;
}

function head({ echo }: SaidNatively): Item {
  return {
    ...{ id: 'resp_vendor', object: 'response', created_at: 1_790_000_000, status: 'in_progress', background: false },
    ...{
      error: null,
      incomplete_details: null,
      instructions: null,
      max_output_tokens: null,
      model: 'gpt-5-2025-08-07',
    },
    ...{ output: [], parallel_tool_calls: true, previous_response_id: null, prompt_cache_key: null },
    ...{ reasoning: { effort: 'medium', summary: null }, service_tier: 'default', store: false, temperature: 1 },
    ...{ text: { format: { type: 'text' }, verbosity: 'medium' }, tool_choice: 'auto', tools: [], top_p: 1 },
    ...{ truncation: 'disabled', usage: null, user: null, metadata: {}, ...echo },
  };
}

function itemOf(
  piece: Piece,
  index: number,
  { encrypted, custom = [], namespace, finish, pieces }: SaidNatively,
): Item {
  const isCut = finish === 'length' && index === pieces.length - 1;
  const status = isCut ? 'incomplete' : 'completed';
  if ('reasoning' in piece)
    return {
      ...{ id: `rs_vendor${index}`, type: 'reasoning', summary: [{ type: 'summary_text', text: piece.reasoning }] },
      ...(encrypted !== undefined && { encrypted_content: encrypted }),
    };
  if ('text' in piece) {
    const place = { start_index: 0, end_index: piece.text.length };
    const annotations = (piece.cites ?? []).map((page) => ({ type: 'url_citation', ...place, ...page }));
    const content = [{ type: 'output_text', text: piece.text, annotations, logprobs: [] }];
    return { id: `msg_vendor${index}`, type: 'message', status, role: 'assistant', content };
  }
  const own = namespace === undefined ? {} : { namespace };
  const name = namespace === undefined ? piece.call : piece.call.slice(namespace.length + 2);
  const call = { status, call_id: piece.id, name, ...own };
  if (!custom.includes(piece.call))
    return { id: `fc_vendor${index}`, type: 'function_call', ...call, arguments: piece.arguments };
  const { input } = (isCut ? { input: piece.arguments } : JSON.parse(piece.arguments)) as { input: string };
  return { id: `ctc_vendor${index}`, type: 'custom_tool_call', ...call, input };
}

function outputOf(said: SaidNatively): readonly Item[] {
  return [...(said.items ?? []), ...said.pieces.map((piece, index) => itemOf(piece, index, said))];
}

/** Complete body of a response. */
export function responsesBody(said: SaidNatively): Item {
  const { prompt = 20, completion = 5, cached = 0, reasoned = 2 } = said.usage ?? {};
  const isCut = said.finish === 'length';
  return {
    ...head(said),
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: outputOf(said),
    usage: {
      ...{ input_tokens: prompt, input_tokens_details: { cached_tokens: cached }, output_tokens: completion },
      ...{ output_tokens_details: { reasoning_tokens: reasoned }, total_tokens: prompt + completion },
    },
  };
}

/** Events of a stream, numbered as the vendor does it: from 3, with a gap. */
export function responsesEvents(said: SaidNatively): readonly Item[] {
  const opening = head(said);
  const whole = responsesBody(said);
  const events = [
    { type: 'response.created', response: opening },
    { type: 'response.in_progress', response: opening },
    ...outputOf(said).flatMap((item, index) => itemEvents(item, index)),
    { type: `response.${String(whole['status'])}`, response: whole },
  ];
  return events.map((event, index) => ({ ...event, sequence_number: 3 + index * 2 }));
}

const bits = (text: string): readonly string[] => text.match(/.{1,3}/gsu) ?? [];

function itemEvents(item: Item, index: number): readonly Item[] {
  const place = { item_id: item['id'], output_index: index };
  const added = (empty: Item) => ({
    type: 'response.output_item.added',
    output_index: index,
    item: { ...item, status: 'in_progress', ...empty },
  });
  const done = { type: 'response.output_item.done', output_index: index, item };
  const inner = innerEvents(item, place);
  return [added(inner.empty), ...inner.events, done];
}

function innerEvents(item: Item, place: Item): { readonly empty: Item; readonly events: readonly Item[] } {
  const [part] = (item['content'] ?? item['summary'] ?? []) as readonly Item[];
  if (part?.['type'] === 'output_text') {
    const where = { ...place, content_index: 0 };
    const text = String(part['text']);
    return {
      empty: { content: [] },
      events: [
        { type: 'response.content_part.added', ...where, part: { ...part, text: '', annotations: [] } },
        ...bits(text).map((delta) => ({
          type: 'response.output_text.delta',
          ...where,
          delta,
          logprobs: [],
          obfuscation: 'x',
        })),
        ...(part['annotations'] as readonly Item[]).map((annotation, at) => ({
          ...{ type: 'response.output_text.annotation.added', ...where, annotation_index: at, annotation },
        })),
        { type: 'response.output_text.done', ...where, text, logprobs: [] },
        { type: 'response.content_part.done', ...where, part },
      ],
    };
  }
  if (part?.['type'] === 'summary_text') {
    const where = { ...place, summary_index: 0 };
    const text = String(part['text']);
    return {
      empty: { summary: [] },
      events: [
        { type: 'response.reasoning_summary_part.added', ...where, part: { ...part, text: '' } },
        ...bits(text).map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...where, delta })),
        { type: 'response.reasoning_summary_text.done', ...where, text },
        { type: 'response.reasoning_summary_part.done', ...where, part },
      ],
    };
  }
  const [field, name] =
    'input' in item ? ['input', 'custom_tool_call_input'] : ['arguments', 'function_call_arguments'];
  const text = item[field];
  if (typeof text !== 'string') return { empty: {}, events: [] };
  return {
    empty: { [field]: '' },
    events: [
      ...bits(text).map((delta) => ({ type: `response.${name}.delta`, ...place, delta })),
      ...(item['status'] === 'incomplete' ? [] : [{ type: `response.${name}.done`, ...place, [field]: text }]),
    ],
  };
}

/** Events as the bytes of a stream. */
export function responsesText(events: readonly Item[]): string {
  return events.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

/** Sends events or a complete body, in pieces of `cut` bytes. */
export function sendResponses(said: SaidNatively, cut = 65_536): Script {
  return async (wire) => {
    if ((wire.request.json() as Item)['stream'] !== true) return wire.send(respondWith(200, responsesBody(said)));
    return sendEvents(responsesEvents(said), cut)(wire);
  };
}

export function sendEvents(events: readonly Item[], cut = 65_536): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    const bytes = Buffer.from(responsesText(events));
    for (let at = 0; at < bytes.length; at += cut) await wire.send(chunk(bytes.subarray(at, at + cut)));
    await wire.send(LAST_CHUNK);
  };
}

/** Sets the vendor's next response in any format; OpenAI's uses the API of the request. */
export function sayAnywhere(
  rig: IngressRig,
  wire: Wire,
  said: SaidNatively | readonly SaidNatively[],
  cut?: number,
): void {
  const all = [said].flat() as readonly SaidNatively[];
  if (wire !== 'openai') {
    rig.say(wire, all, cut);
    return;
  }
  rig.script(
    'openai',
    ...all.map(
      (one): Script =>
        (connection) => {
          const isNative = connection.request.path.endsWith('/responses');
          return (isNative ? sendResponses(one, cut) : sayScript('openai', one, cut))(connection);
        },
    ),
  );
}
