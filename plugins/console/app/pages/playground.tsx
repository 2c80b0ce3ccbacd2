import { useRef, useState } from 'preact/hooks';
import { get, type Page, sendChat, session } from '../api.ts';
import { count, milliseconds, usd } from '../format.ts';
import { linkTo, route } from '../routing.ts';
import type { Model } from '../shapes.ts';
import { Button, Code, Field, PageHead, Problem, useLoad } from '../ui.tsx';

interface Done {
  readonly request_id: string;
  readonly target: string | null;
  readonly cost_usd: string | null;
  readonly duration_ms: number;
  readonly first_byte_ms: number | null;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
}

interface Output {
  readonly text: string;
  readonly firstMs?: number | undefined;
  readonly done?: Done;
  readonly error?: unknown;
}

/** One or two models at the same prompt, streaming, as the person who signed in. */
export function Playground() {
  const [models, setModels] = useState<readonly string[]>([route.value.query['model'] ?? 'echo/echo']);
  const [system, setSystem] = useState('');
  const [prompt, setPrompt] = useState('Hello there');
  const [most, setMost] = useState('');
  const [outputs, setOutputs] = useState<readonly (Output | undefined)[]>([]);
  const [isBusy, setBusy] = useState(false);
  const stop = useRef<AbortController | undefined>(undefined);
  const known = useLoad('models', () => get<Page<Model>>('/catalog', { limit: 1000 }));

  const bodyOf = (model: string): object => ({
    model,
    messages: [...(system.trim() ? [{ role: 'system', content: system }] : []), { role: 'user', content: prompt }],
    ...(most.trim() !== '' && { max_tokens: Number(most) }),
    stream: true,
    stream_options: { include_usage: true },
  });
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    const abort = new AbortController();
    stop.current = abort;
    setBusy(true);
    setOutputs(models.map(() => ({ text: '' })));
    const put = (place: number, change: (before: Output) => Output): void =>
      setOutputs((before) => before.map((output, at) => (at === place ? change(output ?? { text: '' }) : output)));
    await Promise.all(
      models.map((model, place) =>
        readOutput(bodyOf(model), abort.signal, (change) => put(place, change)).catch(
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
      <form class="panel" onSubmit={(event) => void send(event)}>
        <div class="pair">
          {models.map((model, place) => (
            <Field key={place} label={place === 0 ? 'Model' : 'Second model'}>
              <input
                list="models"
                required
                value={model}
                spellcheck={false}
                onInput={(event) =>
                  setModels(models.map((each, at) => (at === place ? event.currentTarget.value : each)))
                }
              />
            </Field>
          ))}
        </div>
        <div class="pair">
          <Field label="Instructions">
            <textarea value={system} onInput={(event) => setSystem(event.currentTarget.value)} />
          </Field>
          <Field label="Prompt">
            <textarea
              required
              value={prompt}
              onInput={(event) => setPrompt(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === 'Enter' && (event.ctrlKey || event.metaKey))
                  event.currentTarget.form?.requestSubmit();
              }}
            />
          </Field>
        </div>
        <div class="spread">
          <Field label="At most (tokens)">
            <input
              type="number"
              min={1}
              value={most}
              placeholder="the model’s"
              onInput={(event) => setMost(event.currentTarget.value)}
            />
          </Field>
          <div class="actions">
            {models.length === 1 ? (
              <Button onClick={() => setModels([...models, ''])}>Add a second model</Button>
            ) : (
              <Button onClick={() => setModels(models.slice(0, 1))}>One model</Button>
            )}
            {isBusy && <Button onClick={() => stop.current?.abort()}>Stop</Button>}
            <Button kind="main" type="submit" disabled={isBusy}>
              Send (Ctrl+Enter)
            </Button>
          </div>
        </div>
        <datalist id="models">
          {known.data?.data.map(({ id }) => (
            <option key={id} value={id} />
          ))}
        </datalist>
      </form>
      {outputs.length > 0 && (
        <div class="grid">
          {outputs.map((output, place) => (
            <section key={place} class="panel" aria-label={`Response of ${models[place]}`} aria-busy={isBusy}>
              <header>
                <h2>{models[place]}</h2>
              </header>
              <p class="said">{output?.text}</p>
              <Problem error={output?.error} />
              {output && <Figures output={output} />}
            </section>
          ))}
        </div>
      )}
      <details class="panel">
        <summary>The same with curl</summary>
        <Code text={curlOf(bodyOf(models[0] ?? ''))} />
      </details>
    </>
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
  return `curl -N ${location.origin}/v1/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" -H 'content-type: application/json' \\\n  -d '${quoted}'`;
}

/** Reads the events of a chat, and tells each as a change of what is shown. */
async function readOutput(
  body: object,
  signal: AbortSignal,
  put: (change: (before: Output) => Output) => void,
): Promise<void> {
  const began = performance.now();
  const response = await sendChat(body, signal);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    if (done) return;
    const frames = (rest + value).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const [, data] = /^data: (.*)$/m.exec(frame) ?? [];
      if (data === undefined) continue;
      if (frame.startsWith('event: done')) {
        const told = JSON.parse(data) as Done;
        put((before) => ({ ...before, done: told }));
        continue;
      }
      const event = JSON.parse(data) as {
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
}
