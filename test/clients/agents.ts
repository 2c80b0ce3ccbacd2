import path from 'node:path';
import type { Move, VendorRequest } from './scripted-vendor.ts';

/** Coding agent: its task, and the responses of a model that performs it. */
export interface AgentRow {
  /** Model of its set-up. */
  readonly model: string;
  /** Replaces the last line of its set-up. */
  readonly command: string;
  /** Changes a file of its set-up. */
  edit?(text: string): string;
  /** Tool calls in order: a part of the tool's name, and the input. */
  readonly loop: readonly (readonly [tool: RegExp, input: (folder: string) => object])[];
  /** Expected log entry of the gateway. */
  readonly logs?: string;
}

const TASK = '"Change red to blue in note.txt, then show the file."';
export const NOTE = 'note.txt';
export const BEFORE = 'colour: red\n';
export const AFTER = 'colour: blue\n';
export const FINISHED = 'All done: blue.';

const at = (folder: string): string => path.join(folder, NOTE);
const PATCH = `*** Begin Patch\n*** Update File: ${NOTE}\n@@\n-colour: red\n+colour: blue\n*** End Patch\n`;
const CODEX = `codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox ${TASK}`;
const CODEX_LOOP: AgentRow['loop'] = [
  [/^exec_command$/, () => ({ cmd: `cat ${NOTE}` })],
  [/^apply_patch$/, () => ({ input: PATCH })],
  [/^exec_command$/, () => ({ cmd: `cat ${NOTE}` })],
];

export const AGENTS: Readonly<Record<string, AgentRow>> = Object.freeze({
  'claude-code': {
    model: 'claude-opus-5-5',
    command: `claude -p ${TASK} --allowedTools Read,Edit,Bash`,
    loop: [
      [/^Read$/, (folder) => ({ file_path: at(folder) })],
      [/^Edit$/, (folder) => ({ file_path: at(folder), old_string: 'red', new_string: 'blue' })],
      [/^Bash$/, () => ({ command: `cat ${NOTE}`, description: 'Shows the file' })],
    ],
  },
  codex: { model: 'gpt-5.5', command: CODEX, loop: CODEX_LOOP, logs: 'websocket opened' },
  'codex-sse': {
    ...{ model: 'gpt-5.5', command: CODEX, loop: CODEX_LOOP },
    edit: (text) => text.replace('supports_websockets = true', 'supports_websockets = false'),
  },
  'codex-code-mode': {
    ...{ model: 'gpt-6-sol', command: CODEX, logs: 'websocket opened' },
    loop: [
      [/exec$/, () => ({ input: `text(await tools.exec_command({ cmd: 'cat ${NOTE}' }))` })],
      [/exec$/, () => ({ input: `text(await tools.apply_patch(${JSON.stringify(PATCH)}))` })],
      [/exec$/, () => ({ input: `text(await tools.exec_command({ cmd: 'cat ${NOTE}' }))` })],
    ],
  },
  'gemini-cli': {
    model: 'gemini-3.8-flash',
    command: `gemini --skip-trust --yolo -m gemini-3.8-flash -p ${TASK}`,
    loop: [
      [/^read_file$/, (folder) => ({ file_path: at(folder) })],
      [
        /^replace$/,
        (folder) => ({ file_path: at(folder), instruction: 'Blue.', old_string: 'red', new_string: 'blue' }),
      ],
      [/^run_shell_command$/, () => ({ command: `cat ${NOTE}` })],
    ],
  },
  opencode: {
    model: 'claude-opus-5-5',
    command: `opencode run -m tollgate/claude-opus-5-5 ${TASK}`,
    loop: [
      [/^read$/, (folder) => ({ filePath: at(folder) })],
      [/^edit$/, (folder) => ({ filePath: at(folder), oldString: 'red', newString: 'blue' })],
      [/^bash$/, () => ({ command: `cat ${NOTE}`, description: 'Shows the file' })],
    ],
  },
  continue: {
    model: 'gpt-5.5',
    command: `cn --config ~/.continue/config.yaml --auto -p ${TASK}`,
    loop: [
      [/^Read$/, (folder) => ({ filepath: at(folder) })],
      [/^MultiEdit$/, (folder) => ({ file_path: at(folder), edits: [{ old_string: 'red', new_string: 'blue' }] })],
      [/^Bash$/, () => ({ command: `cat ${NOTE}` })],
    ],
  },
  pi: {
    model: 'gpt-5.5',
    command: `pi --provider tollgate --model gpt-5.5 -p ${TASK}`,
    loop: [
      [/^read$/, (folder) => ({ path: at(folder) })],
      [/^edit$/, (folder) => ({ path: at(folder), edits: [{ oldText: 'red', newText: 'blue' }] })],
      [/^bash$/, () => ({ command: `cat ${NOTE}` })],
    ],
  },
  'qwen-code': {
    model: 'gpt-5.5',
    command: `qwen --yolo ${TASK}`,
    loop: [
      [/^read_file$/, (folder) => ({ file_path: at(folder) })],
      [/^edit$/, (folder) => ({ file_path: at(folder), old_string: 'red', new_string: 'blue' })],
      [/^run_shell_command$/, () => ({ command: `cat ${NOTE}` })],
    ],
  },
  cline: {
    model: 'gpt-5.5',
    command: `cline ${TASK}`,
    loop: [
      [/^read_files$/, (folder) => ({ files: [{ path: at(folder) }] })],
      [/^apply_patch$/, () => ({ input: PATCH })],
      [/^run_commands$/, () => ({ commands: [`cat ${NOTE}`] })],
    ],
  },
});

/**
 * Next response of a model that follows an agent's loop. It sends a greeting if the request has no tools, as requests
 * for titles do.
 */
export function moveOf({ loop }: AgentRow, folder: string, { messages, tools = [] }: VendorRequest): Move {
  const names = tools.flatMap((tool) => (tool.function ? [tool.function.name] : []));
  const step = loop[messages.filter(({ role }) => role === 'tool').length];
  if (names.length === 0) return { text: 'Hello there, friend.' };
  if (!step) return { text: FINISHED };
  const name = names.find((one) => step[0].test(one));
  if (name === undefined) return { text: `I have no tool ${step[0].source} among ${names.join(', ')}.` };
  return { reasoning: 'I do the next step.', calls: [{ name, input: step[1](folder) }] };
}
