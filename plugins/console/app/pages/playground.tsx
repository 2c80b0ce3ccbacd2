import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, GATEWAY_URL, get, type Page, readEvents, session } from '../api.ts';
import { count, milliseconds } from '../format.ts';
import {
  chatBody,
  type Draft,
  draftOfRequest,
  EMPTY_DRAFT,
  FORMATS,
  type Format,
  LONGEST_LINK,
  linkText,
  MOST_MODELS,
  PARAMETERS,
  readLink,
  sampleOf,
  type Turn,
} from '../playground-draft.ts';
import { linkTo, route, setWords } from '../routing.ts';
import type { Model, OneCall } from '../shapes.ts';
import {
  Badge,
  Button,
  Choice,
  Code,
  type Column,
  Copy,
  Field,
  PageHead,
  Panel,
  Problem,
  Table,
  Text,
  Usd,
  useLoad,
} from '../ui.tsx';

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
  /** Request as it was sent. */
  readonly sent: Draft;
  readonly text: string;
  /** Tool calls by index. */
  readonly toolCalls: readonly ToolCall[];
  readonly firstMs?: number | undefined;
  readonly done?: Done;
  readonly error?: unknown;
}

/** Typed text survives a change of the page. */
const kept = signal<Draft>(EMPTY_DRAFT);

/** Sends one prompt to up to three models at once, streaming, as the signed-in person. */
export function Playground() {
  const draft = kept.value;
  const set = (part: Partial<Draft>): void => {
    kept.value = { ...kept.value, ...part };
  };
  const opened = useOpened(set);
  const { outputs, isBusy, error, send, stop } = useRun(draft);
  return (
    <>
      <PageHead title="Playground" note={`Calls are made and charged as ${session.value?.user}. No key is needed.`}>
        <Share draft={draft} />
      </PageHead>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Models draft={draft} set={set} />
        <Turns draft={draft} set={set} />
        <Texts draft={draft} set={set} />
        <Options draft={draft} set={set} />
        <Problem error={error ?? opened} />
        <div class="actions">
          <Button kind="main" type="submit" disabled={isBusy}>
            Send (Ctrl+Enter)
          </Button>
          {isBusy && <Button onClick={stop}>Stop</Button>}
        </div>
      </form>
      {outputs.length > 1 && <Comparison outputs={outputs} />}
      {outputs.length > 0 && (
        <div class={outputs.length > 2 ? 'grid three' : 'grid'}>
          {outputs.map((output, place) => (
            <OutputPanel key={place} output={output} isBusy={isBusy}>
              {!isBusy && output.text !== '' && (
                <Button kind="quiet" onClick={() => set(continued(output))}>
                  Continue from this response
                </Button>
              )}
            </OutputPanel>
          ))}
        </div>
      )}
      <Samples draft={draft} />
    </>
  );
}

/** Next turn of a conversation: the sent prompt and its response are before the new prompt. */
function continued({ sent, text }: Output): Partial<Draft> {
  const { turns, prompt, images } = sent;
  return {
    turns: [...turns, { role: 'user', text: prompt, images }, { role: 'assistant', text, images: [] }],
    prompt: '',
    images: [],
  };
}

/** Takes the model, the call or the whole request of the address; returns why that failed, if it did. */
function useOpened(set: (part: Partial<Draft>) => void): unknown {
  const { model, call: id, draft: link } = route.value.query;
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (model !== undefined) set({ models: [model, ...kept.value.models.slice(1)] });
  }, [model]);
  useEffect(() => {
    if (link === undefined) return;
    try {
      set(readLink(link));
      setError(undefined);
    } catch (wrong) {
      setError(wrong);
    }
    // A reload would discard what is typed from now on.
    setWords({ draft: undefined });
  }, [link]);
  // Request of a call to repeat, if the gateway stored it.
  const again = useLoad(id, async () => {
    const { bodies, model: name, requested, provider } = await get<OneCall>(`/calls/${encodeURIComponent(id ?? '')}`);
    const body = (bodies as { request?: { value?: unknown } } | null)?.request?.value;
    set(draftOfRequest(body, requested ?? `${provider}/${name}`));
  });
  return error ?? again.error;
}

/** Copies a link with the request in its fragment, which browsers do not send to servers. */
function Share({ draft }: { draft: Draft }) {
  const text = linkText(draft);
  if (text.length > LONGEST_LINK) return <span class="muted">The request is too long for a link.</span>;
  const hasImages = [draft, ...draft.turns].some(({ images }) => images.length > 0);
  const link = `${location.origin}${location.pathname}${linkTo('playground', { draft: text })}`;
  return <Copy text={link} label={hasImages ? 'Copy link without images' : 'Copy link'} />;
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
    let bodies: readonly object[];
    try {
      bodies = draft.models.map((name) => ({ ...chatBody(draft, name), stream_options: { include_usage: true } }));
    } catch (wrong) {
      setError(wrong);
      return;
    }
    const abort = new AbortController();
    stop.current = abort;
    setBusy(true);
    setOutputs(draft.models.map((name) => ({ model: name, sent: draft, text: '', toolCalls: [] })));
    const put = (place: number, change: (before: Output) => Output): void =>
      setOutputs((before) => before.map((output, at) => (at === place ? change(output) : output)));
    await Promise.all(
      bodies.map((body, place) =>
        readOutput(body, abort.signal, (change) => put(place, change)).catch(
          (error: unknown) => !abort.signal.aborted && put(place, (before) => ({ ...before, error })),
        ),
      ),
    );
    setBusy(false);
  };
  return { outputs, isBusy, error, send, stop: () => stop.current?.abort() };
}

interface Part {
  readonly draft: Draft;
  readonly set: (change: Partial<Draft>) => void;
}

const PLACES = ['Model', 'Second model', 'Third model'];

/** One to three models, with what they cost. */
function Models({ draft: { models }, set }: Part) {
  const known = useLoad('models', () => get<Page<Model>>('/catalog', { limit: 1000 }));
  const rows = known.data?.data ?? [];
  const callable = rows.filter(({ is_callable }) => is_callable);
  const [first] = callable;
  useEffect(() => {
    if (kept.value.models[0] === '' && first) set({ models: [first.id, ...kept.value.models.slice(1)] });
  }, [first?.id]);
  return (
    <>
      <div class={models.length > 2 ? 'pair three' : 'pair'}>
        {models.map((model, place) => (
          <Text
            key={place}
            label={PLACES[place] ?? ''}
            hint={describe(rows.find(({ id }) => id === model.trim()))}
            list="models"
            required
            value={model}
            onType={(text) => set({ models: models.map((each, at) => (at === place ? text : each)) })}
          />
        ))}
      </div>
      <div class="actions">
        {models.length < MOST_MODELS && (
          <Button kind="quiet" onClick={() => set({ models: [...models, ''] })}>
            {models.length === 1 ? 'Add a second model' : 'Add a third model'}
          </Button>
        )}
        {models.length > 1 && (
          <Button kind="quiet" onClick={() => set({ models: models.slice(0, 1) })}>
            One model
          </Button>
        )}
      </div>
      <datalist id="models">
        {callable.map((model) => (
          <option key={model.id} value={model.id}>
            {describe(model)}
          </option>
        ))}
      </datalist>
    </>
  );
}

/** Price of a model, or why it cannot be called. */
function describe(model: Model | undefined): string {
  if (!model) return '';
  const { price, targets, problem, is_callable: isCallable } = model;
  if (!isCallable) return problem ?? 'No key for this provider.';
  if (price) return `$${price.input} in, $${price.output} out per million tokens`;
  return targets ? `alias of ${targets.join(', ')}` : 'no price';
}

const TURN_LABELS = Object.freeze({ user: 'Prompt', assistant: 'Response' });

/** Turns before the prompt, which can be edited. */
function Turns({ draft: { turns }, set }: Part) {
  if (turns.length === 0) return null;
  const put = (place: number, text: string): void =>
    set({ turns: turns.map((turn, at) => (at === place ? { ...turn, text } : turn)) });
  return (
    <fieldset class="group">
      <legend>Conversation so far</legend>
      {turns.map(({ role, text, images }: Turn, place) => (
        <Field
          key={place}
          label={`${TURN_LABELS[role]} ${Math.floor(place / 2) + 1}${images.length > 0 ? ', with images' : ''}`}
        >
          <textarea class="short" value={text} onInput={(event) => put(place, event.currentTarget.value)} />
        </Field>
      ))}
      <Button kind="quiet" onClick={() => set({ turns: [] })}>
        Start a new conversation
      </Button>
    </fieldset>
  );
}

/** Instructions and prompt. */
function Texts({ draft: { system, prompt }, set }: Part) {
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

/** Images, tools, schema and parameters. */
function Options({ draft, set }: Part) {
  const { tools, schema, parameters } = draft;
  return (
    <>
      <div class="pair three">
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
        <Field label="Schema of the response, as JSON" hint="The response is JSON of this schema.">
          <textarea
            class="short"
            placeholder={'{ "type": "object", "properties": { … } }'}
            value={schema}
            spellcheck={false}
            onInput={(event) => set({ schema: event.currentTarget.value })}
          />
        </Field>
      </div>
      <details open={Object.values(parameters).some(Boolean)}>
        <summary>Parameters</summary>
        <div class="pair three">
          {PARAMETERS.map(({ name, label, placeholder }) => (
            <Text
              key={name}
              label={label}
              placeholder={placeholder}
              value={parameters[name] ?? ''}
              onType={(text) => set({ parameters: { ...parameters, [name]: text } })}
            />
          ))}
        </div>
      </details>
    </>
  );
}

/** Table of all models. */
function Comparison({ outputs }: { outputs: readonly Output[] }) {
  const least = (read: (output: Output) => number | undefined): number | undefined => {
    const values = outputs.map(read).filter((value) => value !== undefined);
    return values.length > 1 ? Math.min(...values) : undefined;
  };
  const [cost, first] = [least(costOf), least(firstOf)];
  return (
    <Panel title="Compared">
      <Table
        label="Compared models"
        rows={outputs}
        keyOf={(output) => String(outputs.indexOf(output))}
        columns={
          [
            { name: 'Model', cell: ({ model }) => <div class="wrap">{model}</div> },
            {
              name: 'Cost',
              isNumber: true,
              cell: (output) => (
                <>
                  {costOf(output) !== undefined && costOf(output) === cost && <Badge tone="good">lowest</Badge>}{' '}
                  <Usd of={output.done?.cost_usd} />
                </>
              ),
            },
            {
              name: 'First token',
              isNumber: true,
              cell: (output) => (
                <>
                  {firstOf(output) !== undefined && firstOf(output) === first && <Badge tone="good">fastest</Badge>}{' '}
                  {milliseconds(firstOf(output))}
                </>
              ),
            },
            { name: 'Whole', isNumber: true, cell: ({ done }) => milliseconds(done?.duration_ms) },
            { name: 'Tokens out', isNumber: true, cell: ({ done }) => count(done?.usage?.completion_tokens) },
          ] satisfies readonly Column<Output>[]
        }
      />
    </Panel>
  );
}

function costOf({ done }: Output): number | undefined {
  return done?.cost_usd == null ? undefined : Number(done.cost_usd);
}

function firstOf({ done, firstMs }: Output): number | undefined {
  return done?.first_token_ms ?? firstMs;
}

function OutputPanel({ output, isBusy, children }: { output: Output; isBusy: boolean; children: ComponentChildren }) {
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
      {children}
    </section>
  );
}

/** Images of the prompt, read by the browser. */
function Images({ draft: { images }, set }: Part) {
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
      <Code text={sampleOf(draft, format, GATEWAY_URL)} />
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
