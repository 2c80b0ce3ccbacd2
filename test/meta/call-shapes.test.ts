import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { readSources } from './source-tree.ts';

/** Types of `core/calls` and the dialects' routes of which a plain, whole chat makes no value, by the reason. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'once a generation': [
    ...['CallDeps', 'OperationParts', 'Generation', 'Routes', 'RouteSources', 'Seals', 'DialectRoutes', 'TokenRules'],
    ...['CountBounds', 'RejectedFields', 'RouteParts'],
  ],
  'once a model name': ['Route', 'RouteTarget', 'NativeRows', 'DialectAliases'],
  'a stream': [
    ...['OpenedChat', 'OpenStream', 'Batch', 'Batches', 'ReadSoFar', 'Decoded', 'OpenBatch', 'ChatStream'],
    ...['RunningStream', 'FrameWriter', 'StreamPrefix', 'Broken', 'Resumed', 'ResumePoint'],
  ],
  'a failure': ['FailedAttempt', 'FailureFacts', 'Rejected'],
  'two targets at once': ['Attempts', 'Ended', 'Runner'],
  'a count or a draft': ['Counter', 'Question', 'CountingRow', 'Draft'],
  'another operation': ['Responded', 'AttemptWork', 'WholeOperation', 'AnyJsonOffer', 'Counted'],
  'a token of the caller, a key of several, sealed reasoning, a hook that prepares': [
    ...['OwnToken', 'KeyInUse', 'Opened', 'Requested', 'Texts'],
  ],
  'a client library of a vendor': ['ClientAttempt'],
  'tools of servers': ['FoundServers', 'ToolLoop', 'TurnWriter'],
  'a stream in place of a whole response': ['JoinedResponse', 'OpenChoice'],
  'a parameter, or a row of a table': ['Respond', 'SendTo', 'ReportedUsage', 'OutputField', 'Mutable'],
};

/** Shapes that were replaced by the call. */
const GONE =
  /\b(?:Conversation|Handlers|CallInput|Ingress|ChatResult|ResponseNotes|NotesInput|NotedAttempt|CallRoute)\b/;

const SOURCES = readSources('core/calls').concat(
  readSources('core/http').filter(({ name }) => name === 'core/http/dialect-routes.ts'),
);

const TYPE = /^(?:export )?(?:interface|class|type) (\w+)/gm;

/** Rows of the table of shapes: name and file. */
function readTable(): readonly (readonly [name: string, file: string])[] {
  const page = readFileSync(path.join(PACKAGE_ROOT, 'docs/decisions/one-call.md'), 'utf8');
  return [...page.matchAll(/^\| `(\w+)` \| `([\w./-]+)` \|/gm)].map(([, name = '', file = '']) => [name, file]);
}

describe('the shapes of a call', () => {
  it('are the listed ones, each declared in its file', () => {
    const rows = readTable();
    expect(rows.length).to.be.within(1, 15);
    for (const [name, file] of rows)
      expect(readFileSync(path.join(PACKAGE_ROOT, file), 'utf8')).to.match(
        new RegExp(`^export (?:interface|class|type) ${name}\\b`, 'm'),
      );
  });

  it('include every type of core’s calls that has no other reason', () => {
    const known = new Set([...readTable().map(([name]) => name), ...Object.values(ELSEWHERE).flat()]);
    const declared = SOURCES.flatMap(({ code }) => [...code.matchAll(TYPE)].map(([, name = '']) => name));
    expect(declared.filter((name) => !known.has(name))).to.deep.equal([]);
    expect(
      Object.values(ELSEWHERE)
        .flat()
        .filter((name) => !declared.includes(name)),
    ).to.deep.equal([]);
  });

  it('do not include those that the call replaced', () => {
    expect(SOURCES.filter(({ code }) => GONE.test(code)).map(({ name }) => name)).to.deep.equal([]);
  });
});
