import {
  type ConfigDraft,
  type DraftControl,
  type DraftReport,
  type DraftSection,
  GatewayError,
  type PluginApi,
  type Route,
  type RouteContext,
  type Schema,
} from '../../../contract/index.ts';
import { auditActor, FOR_OPERATORS, hasScope, matchVersion, sendVersion } from '../kit/index.ts';
import { CONFIG_CHANGES, showChanges } from './gateway-routes.ts';
import type { NodeReader } from './nodes.ts';

/** Drafts of the configuration file: what may be composed, checks, and writing. */

const FILE_PATH = '/api/core/admin/configuration/file';
/** Maximum size of a draft. */
const MAX_DRAFT_BYTES = 131_072;

const SECTIONS: readonly DraftSection[] = ['models', 'provider_models', 'plans', 'budgets', 'guardrails'];
const SECTION: Schema = { enum: SECTIONS, description: 'Part of the configuration file.' };
const VERSION: Schema = { type: 'string', description: 'Version of the file, which is its ETag.' };
const TEXTS: Schema = { type: 'array', items: { type: 'string' } };

const DRAFT = {
  type: 'object',
  additionalProperties: false,
  required: ['section', 'name'],
  properties: {
    section: SECTION,
    name: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      pattern: '^[^\\u0000-\\u001f\\u007f]+$',
      description: 'Alias, provider, plan, budget or guardrail.',
    },
    value: {
      description: 'Value as in the file, of the schema of the section; without it, the entry is removed.',
    },
  },
  examples: [{ section: 'models', name: 'fast', value: 'echo/echo' }],
} as const satisfies Schema;

const CONFIGURATION_FILE: Schema = {
  type: 'object',
  required: ['object', 'file', 'version', 'can_write', 'sections'],
  properties: {
    object: { const: 'configuration_file' },
    file: { type: 'string', description: 'Display name of the configuration.' },
    version: VERSION,
    can_write: { type: 'boolean', description: 'True if this session may write drafts to the file.' },
    problem: { type: 'string', description: 'Reason why the file cannot be written.' },
    sections: {
      type: 'array',
      items: {
        type: 'object',
        required: ['section', 'schema', 'entries'],
        properties: {
          section: SECTION,
          schema: { type: 'object', description: 'JSON Schema of an entry.' },
          names: { ...TEXTS, description: 'Possible names; absent if any name is possible.' },
          entries: {
            type: 'array',
            items: {
              type: 'object',
              required: ['name', 'value', 'yaml'],
              properties: {
                name: { type: 'string' },
                value: { description: 'Value in the form of the schema, with references as written.' },
                yaml: { type: 'string' },
                from: {
                  type: 'string',
                  description: 'Imported file that has the entry, which cannot be changed then.',
                },
              },
            },
          },
        },
      },
    },
  },
};

const REPORT: Schema = {
  type: 'object',
  required: ['object', 'file', 'version', 'written', 'yaml', 'diff', 'problems', 'warnings', 'changes', 'other_nodes'],
  properties: {
    object: { const: 'draft' },
    file: { type: 'string', description: 'Display name of the configuration.' },
    version: VERSION,
    written: { type: 'boolean', description: 'True if the file has the entry, and is in use.' },
    yaml: { type: 'string', description: 'The entry as YAML, from the first level; empty for a removed one.' },
    diff: { type: 'string', description: 'Lines of the entry with `+`, `-` or a space before each.' },
    problems: { ...TEXTS, description: 'Problems that would stop a start; none for a valid draft.' },
    warnings: TEXTS,
    changes: CONFIG_CHANGES,
    other_nodes: {
      ...TEXTS,
      description: 'Other processes that read the file: each has to be reloaded by itself, unless it watches the file.',
    },
  },
};

/** Routes of the configuration file and its drafts. */
export function draftRoutes(
  { operators: { gateway } }: PluginApi,
  findOthers: NodeReader['findOthers'],
): readonly Route[] {
  const control = (): DraftControl => {
    const reloads = gateway.reloads();
    if (reloads) return reloads.drafts;
    throw new GatewayError(
      'feature_disabled',
      'This gateway is embedded in a program that loads the configuration. Change it there, or start it with `tollgate start`.',
    );
  };
  return [fileRoute(control, findOthers), checkRoute(control), writeRoute(control, findOthers)];
}

function fileRoute(control: () => DraftControl, findOthers: NodeReader['findOthers']): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: FILE_PATH,
    scope: 'config:read',
    summary: 'Get the parts of the configuration file that can be drafted',
    description: 'References are shown as written, never their values.',
    responses: { 200: { description: 'Entries and schemas; the ETag is the version.', schema: CONFIGURATION_FILE } },
    async handler(ctx) {
      const { problem = await problemOfOthers(findOthers), ...file } = await control().read();
      const mayWrite = hasScope(ctx.state.principal, 'config:write');
      sendVersion(ctx, file.version, {
        object: 'configuration_file',
        ...file,
        can_write: mayWrite && problem === undefined,
        ...(problem !== undefined && { problem }),
      });
    },
  };
}

function checkRoute(control: () => DraftControl): Route {
  return {
    ...FOR_OPERATORS,
    method: 'POST',
    path: '/api/core/admin/configuration/drafts',
    scope: 'config:read',
    summary: 'Check a draft, and get it as YAML with the differences; changes nothing',
    body: DRAFT,
    maxBodyBytes: MAX_DRAFT_BYTES,
    responses: { 200: { description: 'Result of `tollgate config check` with the draft.', schema: REPORT } },
    async handler(ctx) {
      sendReport(ctx, await control().check(readDraft(ctx)), { isWritten: false, otherNodes: [] });
    },
  };
}

function writeRoute(control: () => DraftControl, findOthers: NodeReader['findOthers']): Route {
  return {
    ...FOR_OPERATORS,
    method: 'PUT',
    path: FILE_PATH,
    scope: 'config:write',
    summary: 'Write a draft to the configuration file, and reload',
    description:
      'Needs `server: { console: { write: true } }`, and `If-Match` with the version of the file. Invalid drafts are rejected, and a failed reload is undone.',
    body: DRAFT,
    maxBodyBytes: MAX_DRAFT_BYTES,
    responses: { 200: { description: 'The file has the draft, which is in use.', schema: REPORT } },
    async handler(ctx) {
      const drafts = control();
      const { version, problem } = await drafts.read();
      if (problem === undefined) {
        const reason = await problemOfOthers(findOthers);
        if (reason !== undefined) throw new GatewayError('conflict', reason);
        if (!matchVersion(ctx, version))
          throw new GatewayError(
            'invalid_request',
            'Send the ETag of GET /api/core/admin/configuration/file in If-Match, so that changes of others are not lost.',
            { param: 'If-Match' },
          );
      }
      const report = await drafts.write(readDraft(ctx), version, auditActor(ctx));
      const { sameFile } = await findOthers().catch(() => ({ sameFile: [] }));
      sendReport(ctx, report, { isWritten: true, otherNodes: sameFile });
    },
  };
}

/** Most names in a message. */
const MAX_NAMED = 3;

/** Why other gateways on the store forbid writing: their files would differ. */
async function problemOfOthers(findOthers: NodeReader['findOthers']): Promise<string | undefined> {
  const { otherFile } = await findOthers();
  if (otherFile.length === 0) return undefined;
  const names = otherFile.slice(0, MAX_NAMED).join(', ');
  const more = otherFile.length > MAX_NAMED ? ` and ${otherFile.length - MAX_NAMED} more` : '';
  return `Other gateways on this store have a configuration file of their own: ${names}${more}. Change the files where they come from. A gateway that ended is listed for 30 seconds.`;
}

function readDraft(ctx: RouteContext): ConfigDraft {
  return ctx.state.body as ConfigDraft;
}

function sendReport(
  ctx: RouteContext,
  { version, changes, ...report }: DraftReport,
  { isWritten, otherNodes }: { readonly isWritten: boolean; readonly otherNodes: readonly string[] },
): void {
  sendVersion(ctx, version, {
    object: 'draft',
    version,
    written: isWritten,
    ...report,
    changes: showChanges(changes),
    other_nodes: otherNodes,
  });
}
