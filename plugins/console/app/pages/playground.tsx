import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, get, type Page, readEvents, session } from '../api.ts';
import { count, milliseconds } from '../format.ts';
import { chatBody, type Draft, EMPTY_DRAFT, FORMATS, type Format, readTools, sampleOf } from '../playground-draft.ts';
import { linkTo, route } from '../routing.ts';
import type { Model, OneCall } from '../shapes.ts';
import { Button, Choice, Code, Field, PageHead, Problem, Text, Usd, useLoad } from '../ui.tsx';

interface Done {
  readonly request_id: string;
  readonly target: string | null;
  readonly cost_usd: string | null;
  readonly duration_ms: number;
  readonly first_token_ms: number | null;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
}

interface ToolCall {
  readonly name: string;
  readonly args: string;
}

interface Output {
  readonly model: string;
  readonly text: string;
  /** Tool calls by index. */
  readonly toolCalls: readonly ToolCall[];
  readonly firstMs?: number | undefined;
  readonly done?: Done;
  readonly error?: unknown;
}

/** Typed text survives a change of the page. */
const kept = signal<Draft>(EMPTY_DRAFT);

/** Sends one prompt to one or two models, streaming, as the signed-in person. */
export function Playground() {
  const { model, call: id } = route.value.query;
  const draft = kept.value;
  const set = (part: Partial<Draft>): void => {
    kept.value = { ...kept.value, ...part };
  };
  useEffect(() => {
    if (model !== undefined) set({ models: [model, ...kept.value.models.slice(1)] });
  }, [model]);
  // Request of a call to repeat, if the gateway stored it.
  const again = useLoad(id, async () => set(draftOf(await get<OneCall>(`/calls/${encodeURIComponent(id ?? '')}`))));
  const { outputs, isBusy, error, send, stop } = useRun(draft);
  return (
    <>
      <PageHead title="Playground" note={`Calls are made and charged as ${session.value?.user}. No key is needed.`} />
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <PromptFields draft={draft} set={set} />
        <Problem error={error ?? again.error} />
        <div class="actions">
          <Button kind="main" type="submit" disabled={isBusy}>
            Send (Ctrl+Enter)
          </Button>
          {isBusy && <Button onClick={stop}>Stop</Button>}
        </div>
      </form>
      {outputs.length > 0 && (
        <div class="grid">
          {outputs.map((output, place) => (
            <OutputPanel key={place} output={output} isBusy={isBusy} />
          ))}
        </div>
      )}
      <Samples draft={draft} />
    </>
  );
}

/** Sends the draft to its models; `stop` keeps the output so far. */
function useRun(draft: Draft) {
  const [outputs, setOutputs] = useState<readonly Output[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const stop = useRef<AbortController | undefined>(undefined);
  // Leaving the page cancels the request.
  useEffect(() => () => stop.current?.abort(), []);

  const send = async (): Promise<void> => {
    setError(undefined);
    try {
      readTools(draft.tools);
    } catch (wrong) {
      setError(wrong);
      return;
    }
    const abort = new AbortController();
    stop.current = abort;
    setBusy(true);
    setOutputs(draft.models.map((name) => ({ model: name, text: '', toolCalls: [] })));
    const put = (place: number, change: (before: Output) => Output): void =>
      setOutputs((before) => before.map((output, at) => (at === place ? change(output) : output)));
    await Promise.all(
      draft.models.map((name, place) =>
        readOutput({ ...chatBody(draft, name), stream_options: { include_usage: true } }, abort.signal, (change) =>
          put(place, change),
        ).catch((error: unknown) => !abort.signal.aborted && put(place, (before) => ({ ...before, error }))),
      ),
    );
    setBusy(false);
  };
  return { outputs, isBusy, error, send, stop: () => stop.current?.abort() };
}

function PromptFields({ draft, set }: { draft: Draft; set: (change: Partial<Draft>) => void }) {
  const known = useLoad('models', () => get<Page<Model>>('/catalog', { limit: 1000 }));
  const { models, most, tools } = draft;
  const callable = known.data?.data.filter(({ is_callable }) => is_callable) ?? [];
  const [first] = callable;
  useEffect(() => {
    if (models[0] === '' && first) set({ models: [first.id, ...models.slice(1)] });
  }, [first?.id]);
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
      <Texts draft={draft} set={set} />
      <div class="pair">
        <Images draft={draft} set={set} />
        <Field label="Tools, as JSON" hint="Tools that the model may call. Their calls are shown, but not run.">
          <textarea
            class="short"
            placeholder={'[{ "name": "get_weather", "parameters": { … } }]'}
            value={tools}
            spellcheck={false}
            onInput={(event) => set({ tools: event.currentTarget.value })}
          />
        </Field>
      </div>
      <div class="spread low">
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
        {callable.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </>
  );
}

/** System message and prompt. */
function Texts({ draft: { system, prompt }, set }: { draft: Draft; set: (change: Partial<Draft>) => void }) {
  const sendByKeys = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && event.currentTarget instanceof HTMLTextAreaElement)
      event.currentTarget.form?.requestSubmit();
  };
  return (
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
  );
}

function OutputPanel({ output, isBusy }: { output: Output; isBusy: boolean }) {
  return (
    <section class="panel" aria-label={`Response of ${output.model}`} aria-busy={isBusy}>
      <header>
        <h2>{output.model}</h2>
      </header>
      <p class="said">{output.text}</p>
      {output.toolCalls.map(({ name, args }, place) => (
        <Code key={place} text={`${name}(${args})`} />
      ))}
      <Problem error={output.error} />
      <Figures output={output} />
    </section>
  );
}

/** Images of the prompt, read by the browser. */
function Images({ draft: { images }, set }: { draft: Draft; set: (change: Partial<Draft>) => void }) {
  const [error, setError] = useState<unknown>();
  const add = (files: FileList | null): void => {
    setError(undefined);
    const large = [...(files ?? [])].find(({ size }) => size > MAX_IMAGE_BYTES);
    if (large) {
      setError(`${large.name} has more than 8 MB. Take a smaller picture.`);
      return;
    }
    Promise.all([...(files ?? [])].map(readPicture)).then(
      (read) => set({ images: [...images, ...read].slice(0, MAX_IMAGES) }),
      () => setError('A picture could not be read.'),
    );
  };
  return (
    <div class="field">
      <Field label={`Images, up to ${MAX_IMAGES}`} hint="For models that see.">
        <input
          type="file"
          accept="image/*"
          multiple
          onChange={(event) => {
            add(event.currentTarget.files);
            event.currentTarget.value = '';
          }}
        />
      </Field>
      {images.length > 0 && (
        <div class="actions">
          {images.map((url, place) => (
            <img key={place} class="thumb" src={url} alt={`Number ${place + 1}`} />
          ))}
          <Button kind="quiet" onClick={() => set({ images: [] })}>
            Take them away
          </Button>
        </div>
      )}
      <Problem error={error} />
    </div>
  );
}

const MAX_IMAGES = 4;
const MAX_IMAGE_BYTES = 8_000_000;

function readPicture(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** Request as sample code for programs. */
function Samples({ draft }: { draft: Draft }) {
  const [format, setFormat] = useState<Format>('curl');
  return (
    <details class="panel">
      <summary>The same in code</summary>
      <Choice
        label="As"
        value={format}
        options={FORMATS.map((each) => [each, each] as const)}
        onPick={(word) => setFormat(FORMATS.find((each) => each === word) ?? 'curl')}
      />
      <Code text={sampleOf(draft, format)} />
    </details>
  );
}

function Figures({ output: { firstMs, done } }: { output: Output }) {
  if (!done) return firstMs === undefined ? null : <p class="muted">First token after {milliseconds(firstMs)}</p>;
  return (
    <p class="muted">
      First token {milliseconds(done.first_token_ms ?? firstMs)}, whole {milliseconds(done.duration_ms)}
      {done.usage && `, ${count(done.usage.prompt_tokens)} tokens in, ${count(done.usage.completion_tokens)} out`},{' '}
      {done.cost_usd === null ? 'no price' : <Usd of={done.cost_usd} />}
      {done.target && `, by ${done.target}`}. <a href={linkTo('calls', { request: done.request_id })}>The call</a>
    </p>
  );
}

/** Reads the events of a chat, and reports each as a change of the output. */
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
    const event = data as StreamEvent;
    if (event.error) throw new Error(event.error.message);
    const { content, tool_calls: parts = [] } = event.choices?.[0]?.delta ?? {};
    const text = content ?? '';
    if (text !== '' || parts.length > 0)
      put((before) => ({
        ...before,
        text: before.text + text,
        toolCalls: parts.reduce(addPart, before.toolCalls),
        firstMs: before.firstMs ?? performance.now() - began,
      }));
  }
}

interface ToolPart {
  readonly index?: number;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

interface StreamEvent {
  readonly choices?: readonly {
    readonly delta: { readonly content?: string | null; readonly tool_calls?: readonly ToolPart[] };
  }[];
  readonly error?: { readonly message: string };
}

/** Adds a fragment of a tool call, whose arguments arrive in pieces. */
function addPart(calls: readonly ToolCall[], { index = 0, function: said = {} }: ToolPart): readonly ToolCall[] {
  const known = calls[index] ?? { name: '', args: '' };
  const next = { name: known.name + (said.name ?? ''), args: known.args + (said.arguments ?? '') };
  return Object.assign([...calls], { [index]: next });
}

/** Form values from a stored request, in OpenAI's chat format or another one. */
function draftOf({ bodies, model, requested, provider }: OneCall): Partial<Draft> {
  const body = (bodies as { request?: { value?: unknown } } | null)?.request?.value;
  const fields = (typeof body === 'object' && body !== null ? body : {}) as Readonly<Record<string, unknown>>;
  const messages = (Array.isArray(fields['messages']) ? fields['messages'] : []) as readonly {
    readonly role?: unknown;
    readonly content?: unknown;
  }[];
  const textOf = (role: string): string =>
    messages
      .filter((message) => message.role === role)
      .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
      .at(-1) ?? '';
  const system = typeof fields['system'] === 'string' ? fields['system'] : textOf('system');
  return {
    models: [requested ?? `${provider}/${model}`],
    system,
    prompt: textOf('user'),
    images: [],
    tools: Array.isArray(fields['tools']) ? JSON.stringify(fields['tools'], null, 2) : '',
  };
}
