import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  type DraftEdit,
  type DraftSource,
  editOf,
  entryYaml,
  listSections,
  readGuardrails,
} from '../config/draft-sections.ts';
import { EditError, editText, type TextFormat, valuesOf } from '../config/edit-text.ts';
import { type LoadedConfig, loadConfig } from '../config/load-config.ts';
import { SourceError } from '../config/problems.ts';
import type { AuditActor, AuditChange } from '../contract/audit.ts';
import type { ConfigChange, ConfigDraft, DraftControl, DraftReport } from '../contract/config-changes.ts';
import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { ReloadReport } from '../contract/gateway.ts';
import type { Log } from '../contract/plugin.ts';
import { changedMeanwhile } from '../contract/versions.ts';
import { connect } from '../egress/http-client.ts';
import { diffLines } from './diff-lines.ts';
import { publicProblems, withoutPaths } from './public-problems.ts';
import { replaceFile, whyNotReplaceable } from './replace-file.ts';

export interface DraftDeps {
  /** Returns the active configuration. */
  current(): LoadedConfig;
  /** Reads the configuration files, with this text in place of the main one. */
  read(text: string): Promise<LoadedConfig>;
  /** Checks what a start would refuse; resolves with warnings. */
  inspect(loaded: LoadedConfig): Promise<readonly string[]>;
  compareWith(next: LoadedConfig): readonly ConfigChange[];
  reload(cause: string, actor: AuditActor): Promise<ReloadReport>;
  /** State of the last reload in `/readyz`, which an undone one must not change. */
  readonly lastProblem: { get(): string | undefined; set(problem: string | undefined): void };
  audit(change: AuditChange): Promise<void>;
  readonly log: Log;
}

/** Largest configuration file that is read or written, in bytes. */
const MAX_FILE_BYTES = 1_048_576;
/** Maximum lines and characters of a report. */
const MAX_LINES = 50;
const MAX_AUDIT_LENGTH = 4000;
/** Drafts that may wait while another one is checked. */
const MAX_WAITING = 8;

const FORMATS: Readonly<Record<string, TextFormat>> = Object.freeze({
  '.yaml': 'yaml',
  '.yml': 'yaml',
  '.json': 'json',
});

/** Main file of the configuration, as it is now. */
interface MainFile extends DraftSource {
  /** Display name. */
  readonly name: string;
  readonly raw: LoadedConfig['raw'];
  readonly version: string;
  /** Undefined if there is no file whose text can be changed. */
  readonly text?: {
    readonly file: string;
    readonly format: TextFormat;
    readonly bytes: Buffer;
    readonly content: string;
  };
  /** Why its text cannot be changed. */
  readonly problem?: string;
}

/** Draft, applied to the file and checked. */
interface Examined {
  readonly edit: DraftEdit;
  readonly report: DraftReport;
  /** New text of the file, if it can be changed. */
  readonly content?: string;
}

/** Reads, checks and writes drafts of the configuration file, one at a time. */
export function createDrafts(deps: DraftDeps): DraftControl {
  const inTurn = createQueue();
  return {
    read: async () => {
      const main = await readMain(deps.current());
      const problem = await whyNotWritable(deps.current(), main);
      const { name: file, version } = main;
      return { file, version, ...(problem && { problem: problem.message }), sections: listSections(main) };
    },
    check: (draft) =>
      inTurn(async () => {
        const { report } = await examine(deps, draft, await readMain(deps.current()));
        return report;
      }),
    write: (draft, version, actor) =>
      inTurn(async () => {
        const main = await readMain(deps.current());
        const problem = await whyNotWritable(deps.current(), main);
        if (problem) throw problem;
        if (version !== main.version) throw changedMeanwhile();
        const examined = await examine(deps, draft, main);
        const { problems } = examined.report;
        if (problems.length > 0)
          throw new GatewayError('invalid_request', `Nothing was written: ${problems.slice(0, 3).join(' ')}`, {
            param: 'value',
          });
        return await write(deps, main, examined, draft, actor);
      }),
  };
}

/** Runs work one at a time; refuses it while too much waits. */
function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return (work) => {
    if (waiting >= MAX_WAITING)
      throw new GatewayError('rate_limited', 'Other drafts are being checked. Try again in a moment.', {
        retryAfterMs: 1000,
      });
    waiting += 1;
    const done = last.then(work).finally(() => {
      waiting -= 1;
    });
    last = done.catch(() => undefined);
    return done;
  };
}

async function readMain({ raw, config, builtins }: LoadedConfig): Promise<MainFile> {
  const { isDefault, files } = raw;
  const [file = ''] = files;
  const guardrails = await readGuardrails(builtins);
  const source = { name: config.file, raw, guardrails };
  if (isDefault || file === '') {
    const problem = 'There is no configuration file. Run "tollgate init", and start the gateway with its file.';
    return { ...source, version: 'default', values: raw.value, problem };
  }
  const bytes = await readBounded(file);
  const version = versionOf(bytes);
  const format = path.basename(file) === 'package.json' ? undefined : FORMATS[path.extname(file)];
  if (format === undefined) {
    const problem = `The configuration is in ${path.basename(file)}. Only YAML and JSON files are written. Copy the YAML, and edit the file.`;
    return { ...source, version, values: raw.value, problem };
  }
  const content = bytes.toString('utf8');
  if (!Buffer.from(content).equals(bytes)) {
    const problem = 'The configuration file is not valid UTF-8. Correct it first.';
    return { ...source, version, values: raw.value, problem };
  }
  return { ...source, version, values: readValues(content, format), text: { file, format, bytes, content } };
}

function versionOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 32);
}

async function readBounded(file: string): Promise<Buffer> {
  try {
    if ((await stat(file)).size <= MAX_FILE_BYTES) return await readFile(file);
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new GatewayError('conflict', `The configuration file cannot be read (${code}). Restore it.`);
  }
  throw new GatewayError('conflict', 'The configuration file is larger than 1 MiB. Edit it by hand.');
}

function readValues(content: string, format: TextFormat): DraftSource['values'] {
  try {
    return valuesOf(content, format);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new GatewayError(
      'conflict',
      `The configuration file has errors: ${withoutPaths(error.message)}. Correct it first.`,
    );
  }
}

async function whyNotWritable(
  { config }: LoadedConfig,
  { problem, text }: MainFile,
): Promise<GatewayError | undefined> {
  const { console: rules } = config.server;
  if (!rules.write)
    return new GatewayError(
      'feature_disabled',
      'Drafts are not written to the configuration file. "server: { console: { write: true } }" in that file allows it.',
    );
  const reason = problem ?? (text && (await whyNotReplaceable(text.file)));
  return reason === undefined ? undefined : new GatewayError('conflict', reason);
}

/** Applies a draft to the file, and checks the result. */
async function examine(deps: DraftDeps, draft: ConfigDraft, main: MainFile): Promise<Examined> {
  const edit = editOf(draft, main);
  const { text, name: file, version } = main;
  const content = text && changeText(text, edit);
  const common = { file, version, ...describeEdit(edit) };
  try {
    const { raw } = main;
    const next = await (content === undefined
      ? loadConfig({ raw: { ...raw, value: edit.values }, connect })
      : deps.read(content));
    const warnings = await deps.inspect(next);
    const changes = deps.compareWith(next).slice(0, MAX_LINES);
    const report = { ...common, problems: [], warnings: warnings.map(withoutPaths).slice(0, MAX_LINES), changes };
    return { edit, report, ...(content !== undefined && { content }) };
  } catch (error) {
    const report = { ...common, problems: publicProblems(error).slice(0, MAX_LINES), warnings: [], changes: [] };
    return { edit, report, ...(content !== undefined && { content }) };
  }
}

function changeText({ content, format }: NonNullable<MainFile['text']>, { values }: DraftEdit): string {
  try {
    const changed = editText(content, format, values);
    if (Buffer.byteLength(changed) <= MAX_FILE_BYTES) return changed;
  } catch (error) {
    if (error instanceof EditError) throw new GatewayError('conflict', error.message);
    throw error;
  }
  throw new GatewayError('invalid_request', 'The configuration file would be larger than 1 MiB.', { param: 'value' });
}

/** The entry alone: lines near it in the file may have secrets. */
function describeEdit({ path: entry, before, after }: DraftEdit): Pick<DraftReport, 'yaml' | 'diff'> {
  const yaml = entryYaml(entry, after);
  return { yaml, diff: diffLines(entryYaml(entry, before), yaml) };
}

/** Writes the file and reloads; a failed reload is undone. */
async function write(
  { reload, audit, log, lastProblem }: DraftDeps,
  { text, version, name }: MainFile,
  { edit, report, content }: Examined,
  { section, name: entry }: ConfigDraft,
  actor: AuditActor,
): Promise<DraftReport> {
  if (!text || content === undefined || content === text.content) return report;
  const { file, bytes } = text;
  const subject = `${section}.${entry}`;
  const yamlOf = (value: DraftEdit['before']) =>
    value === undefined ? {} : { yaml: entryYaml(edit.path, value).slice(0, MAX_AUDIT_LENGTH) };
  // First: no change without an entry.
  await audit({
    actor,
    action: 'configuration.write',
    subject,
    before: yamlOf(edit.before),
    after: yamlOf(edit.after),
  });
  const written = Buffer.from(content);
  const problemBefore = lastProblem.get();
  let isWritten = false;
  try {
    if (!(await readBounded(file)).equals(bytes)) throw changedMeanwhile();
    await replaceFile(file, written);
    isWritten = true;
    const { isReloaded, summary = 'the reload failed' } = await reload('a draft was written', actor);
    if (!isReloaded) throw new GatewayError('conflict', `The reload failed: ${summary}.`);
    log.info({ file: name, entry: subject, user: actor.userId }, 'a draft was written to the configuration file');
    return { ...report, version: versionOf(written) };
  } catch (error) {
    const problem = isGatewayError(error) ? error : explainWriteError(error);
    const isBack = !isWritten || (await restore(file, written, bytes));
    if (isWritten && isBack) lastProblem.set(problemBefore);
    const message = describeFailure(problem.message, isWritten, isBack);
    log.error({ file: name, entry: subject, problem: message, version }, 'a draft was not written');
    await audit({
      actor,
      action: 'configuration.undo',
      subject,
      after: { reason: message.slice(0, MAX_AUDIT_LENGTH) },
    }).catch(() => undefined);
    throw isWritten ? new GatewayError('conflict', message) : problem;
  }
}

function describeFailure(reason: string, isWritten: boolean, isBack: boolean): string {
  if (!isWritten) return reason;
  return `${reason} ${isBack ? 'The file has its former content.' : 'The file was changed meanwhile and is not restored.'}`;
}

/** Writes the former content, unless someone else changed the file; resolves with whether it is back. */
async function restore(file: string, written: Buffer, former: Buffer): Promise<boolean> {
  try {
    if (!(await readFile(file)).equals(written)) return false;
    await replaceFile(file, former);
    return true;
  } catch {
    return false;
  }
}

function explainWriteError(error: unknown): GatewayError {
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    EPERM: 'The file belongs to another user, whom this gateway cannot set as owner.',
    EACCES: 'The folder of the file is read-only for this gateway.',
    EROFS: 'The file is on a read-only file system.',
    EBUSY: 'The file is mounted by itself. Mount its folder instead.',
    ENOSPC: 'No space is left on the disk.',
  };
  return new GatewayError('conflict', `Nothing was written. ${reasons[code] ?? `The file system reported ${code}.`}`);
}
