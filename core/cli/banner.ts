import path from 'node:path';
import type { Gateway } from '../app.ts';
import type { Terminal } from './io.ts';

/** What the banner says beside the gateway itself. */
export interface BannerOptions {
  /** The configuration's name for people. */
  readonly file: string;
  /** The value of `--config`: commands that the banner shows need it too. */
  readonly configPath?: string | undefined;
  readonly workers: number;
  readonly terminal: Pick<Terminal, 'colors'>;
}

/** What a newcomer sees: where it listens, what can be called, a key (once) or how to make one, and a line to try. */
export function formatBanner(gateway: Gateway, { file, configPath, workers, terminal }: BannerOptions): string {
  const { colors } = terminal;
  const ready = gateway.providers.filter(({ isConfigured }) => isConfigured).map(({ name }) => name);
  const waiting = gateway.providers.filter(({ isConfigured }) => !isConfigured).map(({ name }) => name);
  const key = gateway.announcements.find(({ use }) => use === 'key')?.value;
  const shown = gateway.announcements.flatMap(({ title, value, use }) => {
    if (use !== 'key-command') return [{ title, value }];
    return process.env[VARIABLE] ? [] : [{ title, value: keyLine(value, configPath) }];
  });
  const lines = [
    `${colors.bold('Tollgate')} listens on ${colors.cyan(gateway.url)}  (API docs: ${gateway.url}/docs)`,
    `  config     ${file}`,
    `  providers  ${ready.join(', ') || 'none ready'}${waiting.length > 0 ? `; without a key: ${waiting.join(', ')}` : ''}`,
    ...(workers > 1 ? [`  workers    ${workers}`] : []),
    ...shown.map(({ title, value }) => `\n${title}:\n  ${colors.green(value)}`),
    '\nTry it:',
    `  ${tryLine(gateway, key)}`,
  ];
  return `${lines.join('\n')}\n\n`;
}

/** Where the line to try takes its key from. */
const VARIABLE = 'TOLLGATE_API_KEY';

/** Makes a key with this program and this configuration, and puts it where the line to try finds it. */
function keyLine(words: string, configPath: string | undefined): string {
  const config = configPath === undefined ? '' : ` --config ${quote(configPath)}`;
  return `export ${VARIABLE}=$(${programName()} ${words}${config})`;
}

/** How this program was called: by its name, or in a clone as a file. */
function programName(): string {
  const [, script = 'tollgate'] = process.argv;
  const name = path.basename(script, path.extname(script));
  return name === 'main' ? `node ${quote(path.relative(process.cwd(), script))}` : name;
}

/** A curl line that works as it stands: with the key when it was just made, else with the variable that holds it. */
function tryLine({ url, providers, models }: Gateway, key: string | undefined): string {
  const provider = (providers.find(({ isConfigured }) => isConfigured) ?? providers[0])?.name ?? 'PROVIDER';
  const model = models.list(provider)[0] ?? 'MODEL';
  const body = JSON.stringify({ model: `${provider}/${model}`, messages: [{ role: 'user', content: 'Hello there' }] });
  // A shell replaces a variable between double quotes alone.
  const authorization = key === undefined ? `"authorization: Bearer $${VARIABLE}"` : `'authorization: Bearer ${key}'`;
  return `curl ${url}/v1/chat/completions -H ${authorization} -H 'content-type: application/json' -d ${quote(body)}`;
}

/** A text as one word of a shell; a path of plain characters stays readable. */
function quote(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
