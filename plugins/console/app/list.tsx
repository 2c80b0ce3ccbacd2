import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { getPages, getSome, hrefOf, type Page, pathOf, type Query } from './api.ts';
import { count, instantOf, wallClock } from './format.ts';
import { type NameKind, useKnownNames } from './known-names.tsx';
import { linkTo, route, setWords } from './routing.ts';
import { Button, Choice, type Column, Copy, type Loaded, Problem, Search, Spinner, Table, useLoad } from './ui.tsx';

/** Lists of the API: filters, order, columns, pages, CSV and the same as curl. */

/** Parameter of the API that filters a list; its value is part of the address. */
export interface Filter {
  readonly name: string;
  readonly label: string;
  readonly options?: readonly (readonly [value: string, text: string])[];
  /** Default: text. The value of a `time` is an instant. */
  readonly type?: 'date' | 'time';
  /** Known names that its field offers. */
  readonly names?: NameKind;
  /** Filters that it excludes. */
  readonly clears?: readonly string[];
  readonly placeholder?: string;
  /** Shown after a click on “More filters”, or if it is set. */
  readonly isMore?: boolean;
}

/** Rows on a page. */
const A_PAGE = 100;
/** Maximum rows of a CSV file. */
const MOST_ROWS = 10_000;

/** Loads one page of a list. Pages of the API may be short although more follow; this reads on until it is full. */
export function useList<Row>(path: string | undefined, query: Query): Loaded<Page<Row>> {
  return useLoad(path && JSON.stringify([path, query]), () => getSome<Row>(path ?? '', query, A_PAGE));
}

/** Names of the parameters that a page of a list has besides its filters. */
const POSITION = Object.freeze({ after: undefined, order: undefined });

/** Field of a filter, whose value is part of the address. */
export function FilterField({ filter, shown }: { filter: Filter; shown?: readonly string[] | undefined }) {
  const { name, label, options, type, placeholder, names, clears = [] } = filter;
  const value = route.value.query[name] ?? '';
  const offer = useKnownNames({ kind: names, shown });
  const onPick = (text: string): void => {
    const cleared = Object.fromEntries(clears.map((other) => [other, undefined]));
    setWords({ ...POSITION, ...(text && cleared), [name]: type === 'time' && text ? instantOf(text) : text });
  };
  if (options) return <Choice label={label} value={value} options={options} onPick={onPick} />;
  const isTime = type === 'time';
  return (
    <>
      <Search
        label={label}
        value={isTime && value ? wallClock(value) : value}
        onPick={onPick}
        {...(type && { type: isTime ? 'datetime-local' : type })}
        {...(placeholder !== undefined && { placeholder })}
        {...offer.field}
      />
      {offer.list}
    </>
  );
}

interface FiltersProps {
  readonly label: string;
  readonly filters: readonly Filter[];
  /** Values in the rows on the page by filter, which its field offers. */
  readonly shown?: Readonly<Record<string, readonly string[]>>;
}

/** Fields of the filters, with a link that removes all. */
export function Filters({ label, filters, shown = {} }: FiltersProps) {
  const { page, query } = route.value;
  const [isWhole, setWhole] = useState(false);
  const isSet = filters.some(({ name }) => query[name]);
  const hidden = filters.filter(({ name, isMore }) => isMore && !query[name]).length;
  // Parameters of the page that are no filter stay.
  const names = new Set(filters.map(({ name }) => name));
  const others = Object.fromEntries(Object.entries(query).filter(([name]) => !names.has(name)));
  return (
    <search class="filters" aria-label={label}>
      {filters
        .filter(({ name, isMore }) => !isMore || isWhole || query[name])
        .map((filter) => (
          <FilterField key={filter.name} filter={filter} shown={shown[filter.name]} />
        ))}
      {(hidden > 0 || isWhole) && (
        <Button kind="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Fewer filters' : `More filters (${hidden})`}
        </Button>
      )}
      {isSet && (
        <a class="button quiet" href={linkTo(page, { ...others, ...POSITION })}>
          Clear
        </a>
      )}
    </search>
  );
}

/** Hidden columns by list, kept in this browser. */
const KEPT = 'tollgate-hidden-columns';
const hiddenColumns = signal<Readonly<Record<string, readonly string[]>>>(readHidden());

function readHidden(): Readonly<Record<string, readonly string[]>> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '{}');
    const lists = Object.entries(typeof found === 'object' && found !== null ? found : {});
    return Object.fromEntries(lists.filter(([, names]) => Array.isArray(names)));
  } catch {
    return {};
  }
}

function setHidden(list: string, names: readonly string[]): void {
  hiddenColumns.value = { ...hiddenColumns.value, [list]: names };
  localStorage.setItem(KEPT, JSON.stringify(hiddenColumns.value));
}

function Columns({ list, names }: { list: string; names: readonly string[] }) {
  const hidden = hiddenColumns.value[list] ?? [];
  return (
    <details class="choose">
      <summary class="button quiet">Columns</summary>
      <fieldset>
        <legend class="unseen">Columns of {list}</legend>
        {names.map((name) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={!hidden.includes(name)}
              onChange={(event) =>
                setHidden(
                  list,
                  event.currentTarget.checked ? hidden.filter((each) => each !== name) : [...hidden, name],
                )
              }
            />
            {name}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

interface ListProps<Row> {
  /** Name of the list: of its CSV file, and of its kept columns. */
  readonly name: string;
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly isCurrent?: (row: Row) => boolean;
  readonly empty: ComponentChildren;
  /** Request of the list, for CSV and curl. */
  readonly path: string;
  readonly query: Query;
  /** Cursor of the next page, if any; `undefined` also for lists that load more by themselves. */
  readonly next?: string | undefined;
  /** Default: the number of rows on this page. */
  readonly total?: ComponentChildren;
}

/** Table of a list with its tools. */
export function List<Row>({ name, label, columns, rows, path, query, next, total, ...table }: ListProps<Row>) {
  const hidden = hiddenColumns.value[name] ?? [];
  const shown = hidden.length === 0 ? columns : columns.filter((column) => !hidden.includes(column.name));
  const order = readOrder(columns);
  const sorted = order ? sortRows(rows, order) : rows;
  const { page, query: words } = route.value;
  return (
    <div class="list">
      <div class="spread tools">
        <span class="muted" role="status">
          {total ?? countOf(rows.length, words['after'] !== undefined, next !== undefined)}
          {order && next !== undefined && `, sorted within this page`}
        </span>
        <div class="actions">
          <Columns list={name} names={columns.filter(({ isQuiet }) => !isQuiet).map((column) => column.name)} />
          <Csv name={name} columns={columns} path={path} query={query} />
          <Copy text={curlOf(path, query)} label="Copy as curl" />
        </div>
      </div>
      <Table
        label={label}
        columns={shown}
        rows={sorted}
        {...table}
        {...(order && { sorted: order })}
        onSort={(column) => setWords(orderAfter(column, order))}
      />
      {(next !== undefined || words['after'] !== undefined) && (
        <p class="actions">
          {words['after'] !== undefined && (
            <a class="button plain" href={linkTo(page, { ...words, after: undefined })}>
              First page
            </a>
          )}
          {next !== undefined && (
            <a class="button plain" href={linkTo(page, { ...words, after: next })}>
              Next page
            </a>
          )}
        </p>
      )}
    </div>
  );
}

/** List that loads its own pages. */
export function LoadedList<Row>({
  list,
  ...props
}: Omit<ListProps<Row>, 'rows' | 'next'> & { readonly list: Loaded<Page<Row>> }) {
  return (
    <>
      <Problem error={list.error} retry={list.reload} />
      <Spinner of={list} />
      {list.data && <List rows={list.data.data} next={list.data.next} {...props} />}
    </>
  );
}

function countOf(rows: number, isLater: boolean, hasMore: boolean): string {
  const some = `${count(rows)} ${rows === 1 ? 'row' : 'rows'}`;
  return isLater || hasMore ? `${some} on this page` : some;
}

export interface Order<Row> {
  readonly column: Column<Row>;
  readonly isDescending: boolean;
}

/** Order in the address: a column, with `-` in front for descending. */
function readOrder<Row>(columns: readonly Column<Row>[]): Order<Row> | undefined {
  const { order = '', sort } = route.value.query;
  const isDescending = order.startsWith('-');
  const byApi = columns.find((column) => sort !== undefined && column.sort === sort);
  if (byApi) return { column: byApi, isDescending: true };
  const column = columns.find(({ name, value }) => value && name === order.replace(/^-/, ''));
  return column && { column, isDescending };
}

/** Parameters after a click on a header: numbers start with the highest, the second click reverses, the third resets. */
function orderAfter<Row>(
  column: Column<Row>,
  now: Order<Row> | undefined,
): Readonly<Record<string, string | undefined>> {
  const isSame = now?.column.name === column.name;
  if (column.sort !== undefined) return { sort: isSame ? undefined : column.sort, order: undefined, after: undefined };
  const isFirst = now?.isDescending === (column.isNumber === true);
  if (isSame && !isFirst) return { order: undefined };
  const isDescending = isSame ? !now.isDescending : column.isNumber === true;
  return { sort: undefined, order: `${isDescending ? '-' : ''}${column.name}` };
}

function sortRows<Row>(rows: readonly Row[], { column, isDescending }: Order<Row>): readonly Row[] {
  // The API has sorted already.
  if (column.sort !== undefined || !column.value) return rows;
  const { value } = column;
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((a, b) => sign * compare(value(a), value(b)));
}

function compare(one: Value, other: Value): number {
  const [a, b] = [Number(one ?? Number.NaN), Number(other ?? Number.NaN)];
  if (!Number.isNaN(a) && !Number.isNaN(b)) return a - b;
  return String(one ?? '').localeCompare(String(other ?? ''));
}

type Value = ReturnType<NonNullable<Column<never>['value']>>;

/** Downloads all matching rows with exact values. */
function Csv<Row>({
  name,
  columns,
  path,
  query,
}: {
  name: string;
  columns: readonly Column<Row>[];
  path: string;
  query: Query;
}) {
  const [state, setState] = useState<'busy' | { readonly error: unknown } | undefined>();
  const [isCut, setCut] = useState(false);
  const download = async (): Promise<void> => {
    setState('busy');
    setCut(false);
    try {
      const { data, next } = await getPages<Row>(path, query, MOST_ROWS);
      const exact = columns.flatMap(({ name: head, value }) => (value ? [{ head, value }] : []));
      const lines = data.map((row) => exact.map(({ value }) => value(row) ?? ''));
      saveFile(`${name}.csv`, formatCsv([exact.map(({ head }) => head), ...lines]));
      setCut(next !== undefined);
      setState(undefined);
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <>
      {isCut && <span role="status">The file has the first {count(MOST_ROWS)} rows.</span>}
      {typeof state === 'object' && <Problem error={state.error} />}
      <Button kind="quiet" disabled={state === 'busy'} onClick={() => void download()}>
        Download CSV
      </Button>
    </>
  );
}

/** Text that a spreadsheet would read as a formula; a plain negative amount is not one. */
const FORMULA = /^(?:[=+@\t\r]|-(?!\d+(?:\.\d+)?$))/;

/** Formats a table by RFC 4180, as the gateway does. */
function formatCsv(rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number): string => {
    const text = FORMULA.test(String(value)) && typeof value === 'string' ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Request of a list as a command; the key is in the environment. */
function curlOf(path: string, query: Query): string {
  return `curl -H "authorization: Bearer $TOLLGATE_KEY" '${location.origin}${hrefOf(pathOf(path, query))}'`;
}
