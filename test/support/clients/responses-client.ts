/** Asks a gateway for responses as clients do, whole or streamed. */

import { readEvents, type Written } from '../formats/responses-dialect.ts';
import { type Event, findDisorder } from '../formats/responses-grammar.ts';
import type { IngressRig } from '../gateways/ingress-rig.ts';

export interface Asked {
  readonly status: number;
  readonly headers: Headers;
  /** The response, also that of a stream's last event. */
  readonly response: Written;
  /** Of a stream. */
  readonly events: readonly Event[];
  readonly text: string;
}

/** Posts a body; a stream that is out of order throws. */
export async function askResponse(rig: IngressRig, body: object, headers: Record<string, string> = {}): Promise<Asked> {
  const answered = await rig.gateway.post('/v1/responses', { input: 'Hi', ...body }, headers);
  const text = await answered.text();
  const isStream = answered.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const events = isStream ? readEvents(text) : [];
  const disorder = isStream ? findDisorder(events) : [];
  if (disorder.length > 0) throw new Error(disorder.join('\n'));
  const response = (isStream ? events.at(-1)?.['response'] : JSON.parse(text)) as Written;
  return { status: answered.status, headers: answered.headers, response, events, text };
}

/** What of an item is the same on every wire. */
export function gistOf({ output }: Written): readonly (readonly unknown[])[] {
  return output.map((item) => {
    const { type, status, name, call_id: id, arguments: args, input, summary, content } = item;
    const [part] = (content ?? summary ?? []) as readonly { readonly text?: string }[];
    if (type === 'reasoning') return [type, part?.text];
    return type === 'message' ? [type, status, part?.text] : [type, status, name, id, args ?? input];
  });
}
