import { useSignal } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useCallback, useEffect, useId, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.ts';
import { exactUsd, time, usd, wholeTime } from './format.ts';

/** Components of pages. */

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  reload(): void;
}

/**
 * Loads data when the page is shown and when `key` changes; loads nothing without a key. Previous data stays until the
 * new data arrives.
 */
export function useLoad<T>(key: string | undefined, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; isLoading: boolean }>({
    isLoading: key !== undefined,
  });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (key === undefined) return undefined;
    let isCurrent = true;
    setState((before) => ({ ...before, isLoading: true }));
    load().then(
      (data) => isCurrent && setState({ data, isLoading: false }),
      (error: unknown) => isCurrent && setState((before) => ({ ...before, error, isLoading: false })),
    );
    return () => {
      isCurrent = false;
    };
  }, [key, round]);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}

const PAUSE_MS = 200;

/** Returns a value once it has not changed for a moment, such as text that a person types. */
export function usePaused<T>(value: T): T {
  const [paused, setPaused] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return paused;
}

export function PageHead({
  title,
  note,
  children,
}: {
  title: string;
  note?: ComponentChildren;
  children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} – Tollgate`;
  }, [title]);
  return (
    <header class="page-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {note && <p class="muted">{note}</p>}
      </div>
      <div class="actions">{children}</div>
    </header>
  );
}

export function Panel({
  title,
  children,
  note,
  actions,
}: {
  title: string;
  children: ComponentChildren;
  note?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {note && <span class="muted">{note}</span>}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** Error with its remedy. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error === undefined) return null;
  const message = error instanceof Error ? error.message : String(error);
  return (
    <div class="problem" role="alert">
      <p>{message}</p>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/**
 * Error of a form that saves. If someone else changed the object meanwhile, it shows what they changed; typed text
 * stays; after a reload it is saved over their version.
 */
export function Conflict({
  error,
  fields,
  known,
  load,
  onReload,
  onGone,
}: {
  error: unknown;
  /** Fields of the form. */
  fields: readonly string[];
  /** Object as the form loaded it; undefined for a new one. */
  known: object | undefined;
  load: () => Promise<object>;
  onReload: () => void;
  /** Called to save the form as a new object, because someone else deleted the old one. */
  onGone?: () => void;
}) {
  const isConflict = known !== undefined && error instanceof ApiError && error.code === 'precondition_failed';
  const now = useLoad(isConflict ? 'now' : undefined, load);
  const box = useRef<HTMLDivElement>(null);
  // The end of a long form may be out of view.
  useEffect(() => box.current?.scrollIntoView({ block: 'nearest' }), [error, now.data]);
  if (!isConflict)
    return (
      <div ref={box}>
        <Problem error={error} />
      </div>
    );
  if (now.error instanceof ApiError && now.error.status === 404)
    return (
      <div class="problem" role="alert" ref={box}>
        <p>Someone else deleted it in the meantime. Your input is kept.</p>
        {onGone && <Button onClick={onGone}>Keep my input for a new one</Button>}
      </div>
    );
  const rows = now.data ? differences(fields, { ...known }, { ...now.data }) : [];
  return (
    <div class="problem" role="alert" ref={box}>
      <p>Someone else changed it in the meantime. Nothing was overwritten, and your input is kept.</p>
      <Problem error={now.error} retry={now.reload} />
      <ul class="lines">
        {rows.map(({ name, before, after }) => (
          <li key={name}>
            <b>{name}</b> {before} → {after}
          </li>
        ))}
      </ul>
      <Button onClick={onReload}>Reload and keep my input</Button>
    </div>
  );
}

type Values = Readonly<Record<string, unknown>>;

/** Fields that differ, with both values as text. */
function differences(fields: readonly string[], before: Values, after: Values) {
  return fields.flatMap((name) => {
    const [was, is] = [textOf(before[name]), textOf(after[name])];
    return was === is ? [] : [{ name: name.replaceAll('_', ' '), before: was, after: is }];
  });
}

function textOf(value: unknown): string {
  if (value === undefined || value === null || value === '') return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

interface ButtonProps {
  readonly children: ComponentChildren;
  readonly kind?: 'main' | 'plain' | 'danger' | 'quiet';
  readonly type?: 'button' | 'submit';
  readonly onClick?: () => void;
  readonly disabled?: boolean;
  readonly title?: string;
  readonly 'aria-label'?: string;
  readonly 'aria-pressed'?: boolean;
  readonly 'aria-expanded'?: boolean;
}

export function Button({ kind = 'plain', type = 'button', children, ...rest }: ButtonProps) {
  return (
    <button type={type} class={`button ${kind}`} {...rest}>
      {children}
    </button>
  );
}

/** Copies a text, and confirms it. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const isCopied = useSignal(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text).catch(() => undefined);
    isCopied.value = true;
    setTimeout(() => {
      isCopied.value = false;
    }, 1500);
  };
  return (
    <Button kind="quiet" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied.value ? 'Copied' : label}</span>
    </Button>
  );
}

export function Code({ text }: { text: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <Copy text={text} />
    </div>
  );
}

export type Tone = 'good' | 'warn' | 'bad' | 'dim';

/** State in a word; the colour only repeats it. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Name that may be long: it wraps only if there is no more space. */
export function Name({ text }: { text: string }) {
  return (
    <div class="wrap">
      <b>{text}</b>
    </div>
  );
}

export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="muted">–</span>;
  return (
    <time dateTime={at} title={`${wholeTime(at)} (${at})`}>
      {time(at)}
    </time>
  );
}

/** Amount in US dollars; the title has all decimals. */
export function Usd({ of: text }: { of: string | null | undefined }) {
  if (text === null || text === undefined) return <>–</>;
  return <span title={exactUsd(text)}>{usd(text)}</span>;
}

export interface Column<Row> {
  readonly name: string;
  readonly isNumber?: boolean;
  /** Hidden on narrow screens. */
  readonly isExtra?: boolean;
  /** Shown on wide screens alone. */
  readonly isWide?: boolean;
  /** Its header is for screen readers alone. */
  readonly isQuiet?: boolean;
  /** Exact value, for CSV and for sorting. */
  readonly value?: (row: Row) => string | number | null | undefined;
  /** Value of the parameter `sort` by which the API sorts, highest first. */
  readonly sort?: string;
  cell(row: Row): ComponentChildren;
}

/** Table of rows. With unchanged `columns` an existing row is not rendered again, which live lists depend on. */
export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  isCurrent,
  empty,
  sorted,
  onSort,
}: {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  isCurrent?: (row: Row) => boolean;
  empty?: ComponentChildren;
  sorted?: { readonly column: Column<Row>; readonly isDescending: boolean };
  onSort?: (column: Column<Row>) => void;
}) {
  const drawn = useRef<{ readonly columns: readonly Column<Row>[]; readonly lines: ReadonlyMap<Row, VNode> }>(
    undefined,
  );
  if (rows.length === 0 && empty) return <div class="empty">{empty}</div>;
  const before = drawn.current?.columns === columns ? drawn.current.lines : undefined;
  const lines = new Map<Row, VNode>();
  const lineOf = (row: Row): VNode => {
    if (isCurrent?.(row)) return <Line key={keyOf(row)} row={row} columns={columns} isCurrent />;
    const line = before?.get(row) ?? <Line key={keyOf(row)} row={row} columns={columns} />;
    lines.set(row, line);
    return line;
  };
  const body = rows.map(lineOf);
  drawn.current = { columns, lines };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
    <section class="table" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head
                key={column.name}
                column={column}
                direction={sorted?.column.name === column.name ? directionOf(sorted.isDescending) : undefined}
                onSort={onSort && (column.value || column.sort) ? () => onSort(column) : undefined}
              />
            ))}
          </tr>
        </thead>
        <tbody>{body}</tbody>
      </table>
    </section>
  );
}

type Direction = 'ascending' | 'descending';

function directionOf(isDescending: boolean): Direction {
  return isDescending ? 'descending' : 'ascending';
}

/** Header of a column; a button if the list can be sorted by it. */
function Head<Row>({
  column,
  direction,
  onSort,
}: {
  column: Column<Row>;
  direction: Direction | undefined;
  onSort: (() => void) | undefined;
}) {
  const arrow = direction && (direction === 'ascending' ? ' ▲' : ' ▼');
  return (
    <th scope="col" class={classOf(column)} {...(direction && { 'aria-sort': direction })}>
      {onSort && !column.isQuiet ? (
        <button type="button" class="sort" onClick={onSort}>
          {column.name}
          <span aria-hidden="true">{arrow}</span>
        </button>
      ) : (
        <span class={column.isQuiet ? 'unseen' : ''}>{column.name}</span>
      )}
    </th>
  );
}

function classOf<Row>({ isNumber, isExtra, isWide }: Column<Row>): string {
  return [isNumber && 'number', isExtra && 'extra', isWide && 'wide'].filter(Boolean).join(' ');
}

function Line<Row>({
  row,
  columns,
  isCurrent = false,
}: {
  row: Row;
  columns: readonly Column<Row>[];
  isCurrent?: boolean;
}) {
  return (
    <tr class={isCurrent ? 'current' : ''}>
      {columns.map((column) => (
        // When rows are shown as lines, each cell has a label.
        <td key={column.name} class={classOf(column)} data-name={column.isQuiet ? undefined : column.name}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
    <label class="field">
      <span>{label}</span>
      {children}
      {hint && <small class="muted">{hint}</small>}
    </label>
  );
}

/** Attributes by which a field offers known names. */
interface Offer {
  /** Id of a datalist. */
  readonly list?: string;
  readonly onFocus?: (event: { readonly currentTarget: HTMLInputElement }) => void;
  readonly onKeyUp?: (event: { readonly currentTarget: HTMLInputElement }) => void;
}

interface TextProps extends Offer {
  readonly label: string;
  readonly value: string;
  readonly onType: (text: string) => void;
  readonly hint?: string;
  readonly type?: 'text' | 'number' | 'date' | 'datetime-local' | 'password';
  readonly placeholder?: string;
  readonly required?: boolean;
  /** Lowest number and step. Default: whole numbers from 1. */
  readonly min?: number;
  readonly step?: string;
}

export function Text({ label, hint, onType, type = 'text', ...rest }: TextProps) {
  return (
    <Field label={label} {...(hint !== undefined && { hint })}>
      <input
        // Preact's types require a single literal type.
        type={type as 'text'}
        autocomplete="off"
        spellcheck={false}
        {...(type === 'number' && { min: 1 })}
        {...rest}
        onInput={(event) => onType(event.currentTarget.value)}
      />
    </Field>
  );
}

export function Choice({
  label,
  hint,
  value,
  options,
  onPick,
}: {
  label: string;
  hint?: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onPick: (value: string) => void;
}) {
  return (
    <Field label={label} {...(hint !== undefined && { hint })}>
      <select value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** Text that is searched once complete: at Enter, or when the field loses the focus. */
export function Search({
  label,
  onPick,
  type = 'search',
  ...rest
}: Offer & {
  label: string;
  value: string;
  onPick: (value: string) => void;
  placeholder?: string;
  type?: 'search' | 'date' | 'datetime-local';
}) {
  return (
    <Field label={label}>
      <input
        type={type as 'search'}
        autocomplete="off"
        spellcheck={false}
        {...rest}
        onChange={(event) => onPick(event.currentTarget.value.trim())}
      />
    </Field>
  );
}

/** Fields of a form that can have the focus. */
const FIELDS = ':is(form, search) :is(input, select, textarea):enabled';

/**
 * Dialog over the page, or at its side. The first field has the focus. Escape closes it, after a question if something
 * was typed, and the focus returns to its previous element.
 */
export function Dialog({
  title,
  onClose,
  children,
  isDrawer = false,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  isDrawer?: boolean;
}) {
  const box = useRef<HTMLDialogElement>(null);
  const head = useRef<HTMLHeadingElement>(null);
  const [isTyped, setTyped] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const id = useId();
  useEffect(() => {
    const back = document.activeElement;
    box.current?.showModal();
    head.current?.focus();
    return () => {
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, []);
  // The form may appear later than the dialog, and replace what had the focus.
  useEffect(() => {
    const { activeElement } = document;
    if (activeElement === head.current || activeElement === document.body || activeElement === box.current)
      box.current?.querySelector<HTMLElement>(FIELDS)?.focus();
  });
  const typing = useRef<Element | null>(null);
  const keep = useRef<HTMLDivElement>(null);
  const leave = (): void => {
    if (!isTyped) {
      onClose();
      return;
    }
    typing.current = document.activeElement;
    setLeaving(true);
  };
  // Events of a dialog within this one are its own.
  const isOwn = (target: EventTarget | null): boolean =>
    target instanceof Element && target.closest('dialog') === box.current;
  useEffect(() => {
    // The question has the focus, then what had it before.
    if (isLeaving) keep.current?.querySelector('button')?.focus();
    else if (typing.current instanceof HTMLElement) typing.current.focus();
  }, [isLeaving]);
  return (
    <dialog
      ref={box}
      class={isDrawer ? 'drawer' : ''}
      aria-labelledby={id}
      onInput={({ target }) => {
        if (target instanceof Element && target.closest('form') && isOwn(target)) setTyped(true);
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOwn(event.target)) return;
        event.preventDefault();
        if (isLeaving) setLeaving(false);
        else leave();
      }}
      onCancel={(event) => {
        event.preventDefault();
        leave();
      }}
      onClose={() => {
        // The browser closed it without a question.
        if (!isTyped) return onClose();
        box.current?.showModal();
        setLeaving(true);
      }}
    >
      <header>
        <h2 id={id} ref={head} tabIndex={-1}>
          {title}
        </h2>
        <Button kind="quiet" onClick={leave} aria-label="Close">
          ✕
        </Button>
      </header>
      {isLeaving && (
        <div class="problem ask" role="alert" ref={keep}>
          <p>Discard what you typed?</p>
          <div class="actions">
            <Button onClick={() => setLeaving(false)}>Keep editing</Button>
            <Button kind="danger" onClick={onClose}>
              Discard
            </Button>
          </div>
        </div>
      )}
      {children}
    </dialog>
  );
}

/** Share as a bar with text; above 1 it is full. */
export function Bar({ share, label, tone = 'good' }: { share: number; label: string; tone?: Tone }) {
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  const isEmpty = share <= 0;
  return (
    <div class={`bar ${tone}`} role="img" aria-label={label}>
      {!isEmpty && <span ref={(element) => element?.style.setProperty('width', width)} />}
    </div>
  );
}

export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? '–'}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Spinner({ of }: { of: Loaded<unknown> }) {
  return of.isLoading && of.data === undefined ? <p class="muted">Loading …</p> : null;
}
