import { useEffect, useRef, useState } from 'preact/hooks';
import { call, GATEWAY_URL, get, hasRoute, type Page, session } from '../api.ts';
import { count, milliseconds } from '../format.ts';
import { linkTo } from '../routing.ts';
import type { SpeechVendor } from '../shapes.ts';
import { Button, Choice, Code, Field, PageHead, Panel, Problem, Spinner, Text, Usd, useLoad } from '../ui.tsx';

interface Sound {
  /** URL of the audio, which this page keeps in memory. */
  readonly url: string;
  readonly file: string;
  readonly format: string;
  readonly bytes: number;
  readonly ms: number;
  readonly cost: string | null;
  readonly characters: number;
  readonly model: string;
  readonly voice: string;
  readonly request: string;
}

/** Page that converts text to speech by one of the gateway's vendors. */
export function Speech() {
  const vendors = useLoad('speech', async () =>
    (await hasRoute('/speech')) ? (await get<Page<SpeechVendor>>('/speech')).data : [],
  );
  const callable = vendors.data?.filter(({ is_callable }) => is_callable) ?? [];
  return (
    <>
      <PageHead title="Speech" note={`Calls are made and charged as ${session.value?.user}. No key is needed.`} />
      <Problem error={vendors.error} retry={vendors.reload} />
      <Spinner of={vendors} />
      {vendors.data && callable.length === 0 && <NoVendor known={vendors.data} />}
      {callable.length > 0 && <SpeechForm vendors={callable} />}
    </>
  );
}

function NoVendor({ known }: { known: readonly SpeechVendor[] }) {
  return (
    <Panel title="No speech vendor can be called">
      {known.length > 0 ? (
        <p>{known.map(({ vendor }) => vendor).join(', ')}: no key is set. Set it in the configuration, and reload.</p>
      ) : (
        <p>Add one to the configuration and reload. espeak runs on the gateway’s machine, without a key:</p>
      )}
      <Code text={'tts:\n  espeak: {}'} />
    </Panel>
  );
}

interface Draft {
  readonly vendor: string;
  readonly model: string;
  readonly voice: string;
  readonly format: string;
  readonly speed: string;
  readonly text: string;
}

/** Request for a draft; the vendor chooses values for empty fields. */
function bodyOf({ model, voice, format, speed, text }: Draft): object {
  return {
    text,
    split: true,
    model,
    format,
    ...(voice.trim() !== '' && { voice: voice.trim() }),
    ...(speed.trim() !== '' && { speed: Number(speed) }),
  };
}

/** Defaults of a vendor. */
function defaultsOf(vendor: SpeechVendor | undefined): Omit<Draft, 'text'> {
  const { models = [], formats = [] } = vendor ?? {};
  return { vendor: vendor?.vendor ?? '', model: models[0] ?? '', voice: '', format: formats[0] ?? '', speed: '' };
}

function SpeechForm({ vendors }: { vendors: readonly SpeechVendor[] }) {
  const [draft, setDraft] = useState<Draft>({ ...defaultsOf(vendors[0]), text: 'Hello there' });
  const [sound, setSound] = useState<Sound>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  useEffect(() => () => sound && URL.revokeObjectURL(sound.url), [sound]);

  const say = async (): Promise<void> => {
    const abort = new AbortController();
    stop.current = abort;
    setBusy(true);
    setError(undefined);
    try {
      const found = await readSound(draft, abort.signal);
      if (!abort.signal.aborted) setSound(found);
    } catch (problem) {
      if (!abort.signal.aborted) setError(problem);
    }
    setBusy(false);
  };
  return (
    <>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          void say();
        }}
      >
        <SpeechFields vendors={vendors} draft={draft} set={(part) => setDraft({ ...draft, ...part })} />
        <div class="actions">
          <Button kind="main" type="submit" disabled={isBusy}>
            Speak (Ctrl+Enter)
          </Button>
          {isBusy && <Button onClick={() => stop.current?.abort()}>Stop</Button>}
        </div>
        <Problem error={error} />
      </form>
      {sound && <SoundPanel sound={sound} />}
      <details class="panel">
        <summary>The same with curl</summary>
        <Code text={curlOf(draft)} />
      </details>
    </>
  );
}

function SpeechFields({
  vendors,
  draft,
  set,
}: {
  vendors: readonly SpeechVendor[];
  draft: Draft;
  set: (part: Partial<Draft>) => void;
}) {
  const vendor = vendors.find((each) => each.vendor === draft.vendor);
  const voices = useLoad(draft.vendor, () =>
    get<{ voices: readonly { id: string; name: string }[] }>(`/speech/${encodeURIComponent(draft.vendor)}/voices`),
  );
  const sayByKeys = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && event.currentTarget instanceof HTMLTextAreaElement)
      event.currentTarget.form?.requestSubmit();
  };
  const same = (words: readonly string[] = []) => words.map((word) => [word, word] as const);
  return (
    <>
      <div class="pair">
        <Choice
          label="Vendor"
          value={draft.vendor}
          options={same(vendors.map((each) => each.vendor))}
          onPick={(name) => set(defaultsOf(vendors.find((each) => each.vendor === name)))}
        />
        <Choice label="Model" value={draft.model} options={same(vendor?.models)} onPick={(model) => set({ model })} />
      </div>
      <div class="pair">
        <Text
          label="Voice"
          list="voices"
          placeholder={vendor?.default_voice ?? ''}
          value={draft.voice}
          onType={(voice) => set({ voice })}
        />
        <div class="pair">
          <Choice
            label="Format"
            value={draft.format}
            options={same(vendor?.formats)}
            onPick={(format) => set({ format })}
          />
          <Text
            label="Speed"
            placeholder={vendor ? `1, of ${vendor.speed.min} to ${vendor.speed.max}` : '1'}
            value={draft.speed}
            onType={(speed) => set({ speed })}
          />
        </div>
      </div>
      <Field label="Text">
        <textarea
          required
          value={draft.text}
          onInput={(event) => set({ text: event.currentTarget.value })}
          onKeyDown={sayByKeys}
        />
      </Field>
      <Problem error={voices.error} retry={voices.reload} />
      <datalist id="voices">
        {voices.data?.voices.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </datalist>
    </>
  );
}

/** Audio without a header, which browsers cannot play. */
const UNPLAYABLE = 'pcm';

function SoundPanel({ sound }: { sound: Sound }) {
  const { cost } = sound;
  return (
    <Panel title="The sound" note={`${sound.model}, ${sound.voice}`}>
      {sound.format === UNPLAYABLE ? (
        <p class="muted">A browser does not play {UNPLAYABLE}. Download it, or choose another format.</p>
      ) : (
        // biome-ignore lint/a11y/useMediaCaption: what it says stands in the field above
        <audio controls src={sound.url} aria-label="The sound" />
      )}
      <p class="muted">
        {sound.format}, {count(sound.bytes)} bytes after {milliseconds(sound.ms)}, {count(sound.characters)} characters,{' '}
        {cost === null ? 'cost unknown' : <Usd of={cost} />}.{' '}
        <a href={linkTo('calls', { request: sound.request })}>The call</a>
      </p>
      <p>
        <a class="button plain" href={sound.url} download={sound.file}>
          Download
        </a>
      </p>
    </Panel>
  );
}

async function readSound(draft: Draft, signal: AbortSignal): Promise<Sound> {
  const began = performance.now();
  const response = await call(`/speech/${encodeURIComponent(draft.vendor)}`, bodyOf(draft), signal);
  const { headers } = response;
  const blob = await response.blob();
  const cost = headers.get('x-tollgate-cost-usd');
  return {
    url: URL.createObjectURL(blob),
    file: `speech.${draft.format}`,
    format: draft.format,
    bytes: blob.size,
    ms: performance.now() - began,
    cost: cost === 'unknown' ? null : cost,
    characters: Number(headers.get('x-tollgate-characters')),
    model: headers.get('x-tollgate-model') ?? draft.model,
    voice: headers.get('x-tollgate-voice') ?? draft.voice,
    request: headers.get('x-request-id') ?? '',
  };
}

function curlOf(draft: Draft): string {
  const quoted = JSON.stringify(bodyOf(draft), null, 2).replaceAll("'", "'\\''");
  return `curl ${GATEWAY_URL}/${encodeURIComponent(draft.vendor)}/tts -o speech.${draft.format} \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" -H 'content-type: application/json' \\\n  -d '${quoted}'`;
}
