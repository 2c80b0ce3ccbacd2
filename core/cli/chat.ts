import { createId } from '../calls/ids.ts';
import type { Principal } from '../contract/call.ts';
import type { ChatMessage } from '../contract/chat.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { withGeneration } from './load.ts';

/** Who the operator is at the command line: no key, no allow-list, an account of its own in the books. */
const OPERATOR: Principal = Object.freeze({ credential: 'key', userId: 'operator', account: 'operator' });

/** `tollgate chat`: one question through the pipeline of this configuration; the answer on stdout as it comes. */
export async function run(context: CommandContext): Promise<void> {
  const { options, args, globals, terminal } = context;
  const [model = '', ...words] = args;
  const prompt = words.length === 0 || words.join(' ') === '-' ? await readStdin() : words.join(' ');
  if (prompt.trim() === '')
    throw new CliError('there is no prompt', EXIT.usage, 'Write it behind the model, or pipe it in.');
  const maxTokens = readCount(options['maxTokens']);
  const system = options['system'];
  const messages: ChatMessage[] = [
    ...(typeof system === 'string' ? [{ role: 'system', content: system } as const] : []),
    { role: 'user', content: prompt },
  ];
  const request = { model, messages, ...(maxTokens !== undefined && { max_tokens: maxTokens }) };

  await withGeneration(context, async ({ services }) => {
    const stop = new AbortController();
    process.once('SIGINT', () => stop.abort());
    const call = { principal: OPERATOR, requestId: createId('req_'), signal: stop.signal };
    if (globals.json || options['stream'] === false) {
      const response = await services.chat({ ...request, stream: false }, call);
      if ('choices' in response)
        createIo(terminal, globals.json === true).result(response, response.choices[0]?.message.content ?? '');
      return;
    }
    const chunks = await services.chat({ ...request, stream: true }, call);
    if (!(Symbol.asyncIterator in chunks)) return;
    for await (const chunk of chunks) terminal.out.write(chunk.choices[0]?.delta.content ?? '');
    terminal.out.write('\n');
  });
}

function readCount(text: string | boolean | undefined): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new CliError(`"${String(text)}" is not a number of tokens`, EXIT.usage);
  return count;
}

async function readStdin(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Write the message and end it with Ctrl-D:\n');
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += String(chunk);
  return text;
}
