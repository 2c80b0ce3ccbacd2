import { createGateway } from '../app.ts';
import { createLogger } from '../logger.ts';
import { createEventReader } from '../sse.ts';
import type { CommandContext } from './commands.ts';
import { CliError, EXIT } from './io.ts';
import { makeTemporaryKey } from './temporary-key.ts';

interface Answer {
  readonly choices?: readonly { readonly message?: { readonly content?: string | null }; readonly delta?: { readonly content?: string | null } }[];
  readonly error?: { readonly message: string; readonly code: string };
}

/** `tollgate chat`: one question, the answer on stdout as it comes. */
export async function run(context: CommandContext): Promise<void> {
  const { options, args } = context;
  const [model = '', ...words] = args;
  const prompt = words.length === 0 || words.join(' ') === '-' ? await readStdin() : words.join(' ');
  if (prompt.trim() === '') throw new CliError('there is no prompt', EXIT.usage, 'Write it behind the model, or pipe it in.');
  const maxTokens = options['maxTokens'] === undefined ? undefined : Number(options['maxTokens']);
  const stream = options['stream'] !== false && context.globals.json !== true;
  const messages = [...(typeof options['system'] === 'string' ? [{ role: 'system', content: options['system'] }] : []), { role: 'user', content: prompt }];
  const body = JSON.stringify({ model, messages, stream, ...(maxTokens !== undefined && { max_tokens: maxTokens }) });
  await withGateway(context, async (url, key) => {
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', redirect: 'error', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body });
    if (!response.ok || !response.body) throw failure((await response.json()) as Answer);
    if (!stream) {
      const text = await response.text();
      context.terminal.out.write(context.globals.json ? `${text.trim()}\n` : `${(JSON.parse(text) as Answer).choices?.[0]?.message?.content ?? ''}\n`);
      return;
    }
    await printStream(response.body, context);
  });
}

async function printStream(body: AsyncIterable<Uint8Array>, { terminal }: CommandContext): Promise<void> {
  const reader = createEventReader();
  for await (const bytes of body) {
    for (const { data } of reader.push(bytes)) {
      if (data === '[DONE]') continue;
      const chunk = JSON.parse(data) as Answer;
      if (chunk.error) throw failure(chunk);
      terminal.out.write(chunk.choices?.[0]?.delta?.content ?? '');
    }
  }
  terminal.out.write('\n');
}

function failure({ error }: Answer): CliError {
  return new CliError(error?.message ?? 'the gateway answered with an error', EXIT.unavailable);
}

/** A gateway that runs already (`--url`), or one of this configuration for as long as the command takes. */
async function withGateway({ globals, options }: CommandContext, work: (url: string, key: string) => Promise<void>): Promise<void> {
  const url = options['url'];
  const given = typeof options['key'] === 'string' ? options['key'] : process.env['TOLLGATE_API_KEY'];
  if (typeof url === 'string') {
    if (!given) throw new CliError('a gateway elsewhere needs an API key', EXIT.usage, 'Set TOLLGATE_API_KEY, or use --key.');
    await work(url.replace(/\/+$/, ''), given);
    return;
  }
  const log = createLogger({ level: 'silent', format: 'json', isTerminal: false, destination: process.stderr });
  const gateway = await createGateway({ cwd: process.cwd(), env: process.env, configPath: globals.config, host: '127.0.0.1', port: 0, log });
  try {
    const [announced] = gateway.announcements.filter(({ use }) => use === 'key');
    // An announced first key is shown once, and this is the once.
    if (announced) process.stderr.write(`${announced.title}:\n  ${announced.value}\n\n`);
    await work(gateway.url, given ?? announced?.value ?? (await makeTemporaryKey({ globals })));
  } finally {
    await gateway.close();
  }
}

async function readStdin(): Promise<string> {
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += String(chunk);
  return text;
}
