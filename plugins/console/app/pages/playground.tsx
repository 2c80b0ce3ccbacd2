import { useEffect, useRef, useState } from 'preact/hooks';
import { call, GATEWAY_URL, get, type Page, readEvents, session } from '../api.ts';
import { count, milliseconds, usd } from '../format.ts';
import { linkTo, route } from '../routing.ts';
import type { Model } from '../shapes.ts';
import { Button, Code, Field, PageHead, Problem, Text, useLoad } from '../ui.tsx';

interface Done {
  readonly request_id: string;
  readonly target: string | null;
  readonly cost_usd: string | null;
  readonly duration_ms: number;
  readonly first_byte_ms: number | null;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
}

interface Output {
  readonly model: string;
  readonly text: string;
  readonly firstMs?: number | undefined;
  readonly done?: Done;
  readonly error?: unknown;
}

interface Draft {
  readonly models: readonly string[];
  readonly system: string;
  readonly prompt: string;
  readonly most: string;
}

/** The request of a draft to one of its models. */
function bodyOf({ system, prompt, most }: Draft, model: string): object {
  return {
    model,
    messages: [...(system.trim() ? [{ role: 'system', content: system }] : []), { role: 'user', content: prompt }],
    ...(most.trim() !== '' && { max_tokens: Number(most) }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** One or two models at the same prompt, streaming, as the person who signed in. */
export function Playground() {
  const model = route.value.query['model'] ?? 'echo/echo';
  const [draft, setDraft] = useState<Draft>({ models: [model], system: '', prompt: 'Hello there', most: '' });
  const [outputs, setOutputs] = useState<readonly Output[]>([]);
  const [isBusy, setBusy] = useState(false);
  const stop = useRef<AbortController | undefined>(undefined);
  // Who leaves the page wants no more of it.
  useEffect(() => () => stop.current?.abort(), []);

  const send = async (): Promise<void> => {
    const abort = new AbortController();
    stop.current = abort;
    setBusy(true);
    setOutputs(draft.models.map((name) => ({ model: name, text: '' })));
    const put = (place: number, change: (before: Output) => Output): void =>
      setOutputs((before) => before.map((output, at) => (at === place ? change(output) : output)));
    await Promise.all(
      draft.models.map((name, place) =>
        readOutput(bodyOf(draft, name), abort.signal, (change) => put(place, change)).catch(
          (error: unknown) => !abort.signal.aborted && put(place, (before) => ({ ...before, error })),
        ),
      ),
    );
    setBusy(false);
  };
  return (
    <>
      <PageHead
        title="Playground"
        note={`Calls are made as ${session.value?.user}, within what you may, and booked under that name. No key is needed.`}
      />
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <PromptFields draft={draft} set={(change) => setDraft({ ...draft, ...change })} />
        <div class="actions">
          <Button kind="main" type="submit" disabled={isBusy}>
            Send (Ctrl+Enter)
          </Button>
          {isBusy && <Button onClick={() => stop.current?.abort()}>Stop</Button>}
        </div>
      </form>
      {outputs.length > 0 && (
        <div class="grid">
          {outputs.map((output, place) => (
            <OutputPanel key={place} output={output} isBusy={isBusy} />
          ))}
        </div>
      )}
      <details class="panel">
        <summary>The same with curl</summary>
        <Code text={curlOf(bodyOf(draft, draft.models[0] ?? ''))} />
      </details>
    </>
  );
}

function PromptFields({ draft, set }: { draft: Draft; set: (change: Partial<Draft>) => void }) {
  const known = useLoad('models', () => get<Page<Model>>('/catalog', { limit: 1000 }));
  const { models, system, prompt, most } = draft;
  const sendByKeys = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && event.currentTarget instanceof HTMLTextAreaElement)
      event.currentTarget.form?.requestSubmit();
  };
  return (
    <>
      <div class="pair">
        {models.map((model, place) => (
          <Text
            key={place}
            label={place === 0 ? 'Model' : 'Second model'}
            list="models"
            required
            value={model}
            onType={(text) => set({ models: models.map((each, at) => (at === place ? text : each)) })}
          />
        ))}
      </div>
      <div class="pair">
        <Field label="Instructions">
          <textarea value={system} onInput={(event) => set({ system: event.currentTarget.value })} />
        </Field>
        <Field label="Prompt">
          <textarea
            required
            value={prompt}
            onInput={(event) => set({ prompt: event.currentTarget.value })}
            onKeyDown={sendByKeys}
          />
        </Field>
      </div>
      <div class="spread">
        <Text
          label="At most (tokens)"
          type="number"
          placeholder="the model’s"
          value={most}
          onType={(text) => set({ most: text })}
        />
        {models.length === 1 ? (
          <Button onClick={() => set({ models: [...models, ''] })}>Add a second model</Button>
        ) : (
          <Button onClick={() => set({ models: models.slice(0, 1) })}>One model</Button>
        )}
      </div>
      <datalist id="models">
        {known.data?.data.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </>
  );
}

function OutputPanel({ output, isBusy }: { output: Output; isBusy: boolean }) {
  return (
    <section class="panel" aria-label={`Response of ${output.model}`} aria-busy={isBusy}>
      <header>
        <h2>{output.model}</h2>
      </header>
      <p class="said">{output.text}</p>
      <Problem error={output.error} />
      <Figures output={output} />
    </section>
  );
}

function Figures({ output: { firstMs, done } }: { output: Output }) {
  if (!done) return firstMs === undefined ? null : <p class="muted">First token after {milliseconds(firstMs)}</p>;
  return (
    <p class="muted">
      First token {milliseconds(firstMs)}, whole {milliseconds(done.duration_ms)}
      {done.usage && `, ${count(done.usage.prompt_tokens)} tokens in, ${count(done.usage.completion_tokens)} out`},{' '}
      {done.cost_usd === null ? 'no price' : usd(done.cost_usd)}
      {done.target && `, by ${done.target}`}. <a href={linkTo('calls', { request: done.request_id })}>The call</a>
    </p>
  );
}

function curlOf(body: object): string {
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `curl -N ${GATEWAY_URL}/v1/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" -H 'content-type: application/json' \\\n  -d '${quoted}'`;
}

/** Reads the events of a chat, and tells each as a change of what is shown. */
async function readOutput(
  body: object,
  signal: AbortSignal,
  put: (change: (before: Output) => Output) => void,
): Promise<void> {
  const began = performance.now();
  for await (const { name, data } of readEvents(await call('/console/chat', body, signal))) {
    if (name === 'done') {
      put((before) => ({ ...before, done: data as Done }));
      continue;
    }
    const event = data as {
      choices?: readonly { delta: { content?: string | null; reasoning_content?: string | null } }[];
      error?: { message: string };
    };
    if (event.error) throw new Error(event.error.message);
    const text = event.choices?.[0]?.delta.content ?? '';
    if (text !== '')
      put((before) => ({
        ...before,
        text: before.text + text,
        firstMs: before.firstMs ?? performance.now() - began,
      }));
  }
}
