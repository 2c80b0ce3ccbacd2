/**
 * Vendor with OpenAI's published rules of November 2026: the APIs of each model, the rejections of each API, and the
 * items that may be sent back. It reasons, then calls the first tool once, and responds with text after the tool's
 * result. A test can choose other responses. Sources: developers.openai.com/api/docs/guides/deployment-checklist (tools
 * by model and API), `ModelIdsResponses`, `CreateResponse` and `Reasoning` of github.com/openai/openai-openapi,
 * developers.openai.com/api/docs/guides/reasoning (efforts, encrypted reasoning),
 * developers.openai.com/api/docs/guides/deep-research. Error bodies from public threads: sub2api#6740,
 * foundry-dev-tools#779, pgadmin4#9795, vercel/ai#7543, litellm-docs#1173 (efforts of gpt-6-astra), bolna#1019
 * (`stop`), lobehub#8291 (deep research).
 */
import { sayScript } from '../gateways/ingress-rig.ts';
import { sendResponses } from './responses-wire.ts';
import { type RecordedRequest, respondWith, type Script } from './scripted-upstream.ts';
import type { Piece } from './vendor-wires.ts';

type Body = Readonly<Record<string, unknown>>;

interface ModelRules {
  /** True if the model supports chat completions. */
  readonly chat: boolean;
  readonly efforts: readonly string[];
  /** Efforts for which chat completions support function tools. */
  readonly chatTools: readonly (string | undefined)[];
  /** Efforts that only the Responses API accepts. */
  readonly responsesEfforts?: readonly string[];
  readonly needsSearch?: boolean;
}

const LOW = ['low', 'medium', 'high'];
const XHIGH = [...LOW, 'xhigh'];
const MAX = [...XHIGH, 'max'];

/** The first matching row applies. */
const MODELS: readonly (readonly [model: RegExp, rules: ModelRules])[] = [
  [/-deep-research/, { chat: false, efforts: ['medium'], chatTools: [], needsSearch: true }],
  [/^gpt-5-pro/, { chat: false, efforts: ['high'], chatTools: [] }],
  [/^gpt-5\.\d-pro/, { chat: false, efforts: ['medium', 'high', 'xhigh'], chatTools: [] }],
  [/^o\d-pro/, { chat: false, efforts: LOW, chatTools: [] }],
  [/-codex/, { chat: false, efforts: XHIGH, chatTools: [] }],
  [/^gpt-6-astra/, { chat: true, efforts: MAX, chatTools: [], responsesEfforts: ['max'] }],
  [/^gpt-6\.1-sol/, { chat: true, efforts: MAX, chatTools: [] }],
  [/^gpt-(6-sol|6-luna|6\.1-terra|5\.6)/, { chat: true, efforts: ['none', ...MAX], chatTools: ['none'] }],
  [/^gpt-5\.[45]/, { chat: true, efforts: ['none', ...XHIGH], chatTools: ['none'] }],
];

/** Rejection in the vendor's format. */
class Refusal extends Error {
  readonly status: number;
  readonly body: object;
  constructor(
    message: string,
    more: { readonly status?: number; readonly param?: string; readonly code?: string } = {},
  ) {
    super(message);
    const { status = 400, param = null, code = null } = more;
    this.status = status;
    this.body = { error: { message, type: 'invalid_request_error', param, code } };
  }
}

const unsupported = (param: string, isValue = false): Refusal =>
  new Refusal(`Unsupported ${isValue ? 'value' : 'parameter'}: '${param}' is not supported with this model.`, {
    param,
    code: isValue ? 'unsupported_value' : 'unsupported_parameter',
  });

const listOf = (value: unknown): readonly Body[] => (Array.isArray(value) ? value : []);

/** Response of the model to a body of either API, after its reasoning. */
type Choose = (body: Body) => readonly Piece[];

/** Script of the vendor for one gateway: it recognizes the data that it encrypted. */
export function createOpenaiRules(choose: Choose = callOnce): Script {
  const encrypted = new Set<string>();
  return async (wire) => {
    try {
      const isResponses = wire.request.path.endsWith('/responses');
      const body = wire.request.json() as Body;
      if (isResponses) await respond(body, encrypted, choose)(wire);
      else await completeChat(body, choose)(wire);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await wire.send(respondWith(error.status, error.body));
    }
  };
}

function rulesOf(body: Body): ModelRules {
  const model = String(body['model']);
  const [, rules] = MODELS.find(([pattern]) => pattern.test(model)) ?? [];
  if (!rules)
    throw new Refusal(`The model \`${model}\` does not exist or you do not have access to it.`, {
      status: 404,
      code: 'model_not_found',
    });
  return rules;
}

const SAMPLING = ['temperature', 'top_p', 'logprobs', 'top_logprobs'];
const NEVER_WITH_REASONING = ['frequency_penalty', 'presence_penalty', 'logit_bias'];

function assertSampling(body: Body, effort: unknown): void {
  const refused = effort === 'none' ? NEVER_WITH_REASONING : [...SAMPLING, ...NEVER_WITH_REASONING];
  for (const field of refused) if (field in body && body[field] !== 1) throw unsupported(field, true);
}

function completeChat(body: Body, choose: Choose): Script {
  const { chat, efforts, chatTools, responsesEfforts = [] } = rulesOf(body);
  const effort = body['reasoning_effort'] as string | undefined;
  if (!chat)
    throw new Refusal('This model is only supported in v1/responses and not in v1/chat/completions.', {
      status: 404,
      param: 'model',
    });
  if ('max_tokens' in body) throw unsupported('max_tokens');
  if (effort !== undefined && (!efforts.includes(effort) || responsesEfforts.includes(effort)))
    throw unsupported('reasoning_effort', true);
  if ('stop' in body && body['model'] === 'gpt-6-astra') throw unsupported('stop');
  assertSampling(body, effort);
  const tools = listOf(body['tools']);
  if (tools.length > 0 && !chatTools.includes(effort))
    throw new Refusal(
      `Function tools with reasoning_effort are not supported for ${String(body['model'])} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
      { param: 'reasoning_effort' },
    );
  return sayScript('openai', { pieces: choose(body) });
}

const nameOf = (tool: Body | undefined): string | undefined =>
  typeof tool?.['name'] === 'string' ? tool['name'] : undefined;

/** Calls the tool if there is one without a result, otherwise responds with text. */
function callOnce(body: Body): readonly Piece[] {
  const isCalled = [...listOf(body['messages']), ...listOf(body['input'])].some(
    ({ role, type }) => role === 'tool' || type === 'function_call_output',
  );
  const tool = listOf(body['tools']).find(({ type }) => type === 'function');
  const name = nameOf((tool?.['function'] as Body | undefined) ?? tool);
  if (isCalled || name === undefined) return [{ text: 'It is 12 degrees.' }];
  return [{ call: name, id: 'call_Weather1', arguments: CALL }];
}

const CALL = '{"city":"Oslo"}';

/** Parameters of `CreateResponse`, and `client_metadata`, which OpenAI's own Codex sends there. */
const PARAMETERS = new Set(
  `background client_metadata context_management conversation include input instructions max_output_tokens max_tool_calls metadata model moderation
  parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier
  service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user`.split(
    /\s+/,
  ),
);
const MIN_OUTPUT = 16;

function respond(body: Body, encrypted: Set<string>, choose: Choose): Script {
  const { efforts, needsSearch = false } = rulesOf(body);
  for (const name of Object.keys(body))
    if (!PARAMETERS.has(name))
      throw new Refusal(`Unknown parameter: '${name}'.`, { param: name, code: 'unknown_parameter' });
  const { effort, summary } = (body['reasoning'] ?? {}) as Body;
  if (effort !== undefined && !efforts.includes(String(effort))) throw unsupported('reasoning.effort', true);
  assertSampling(body, effort);
  if (typeof body['max_output_tokens'] === 'number' && body['max_output_tokens'] < MIN_OUTPUT)
    throw new Refusal(`Invalid 'max_output_tokens': integer below minimum value.`, {
      param: 'max_output_tokens',
      code: 'integer_below_min_value',
    });
  const tools = listOf(body['tools']);
  for (const [at, tool] of tools.entries())
    if (tool['type'] === 'function' && nameOf(tool) === undefined)
      throw new Refusal(`Missing required parameter: 'tools[${at}].name'.`, { param: `tools[${at}].name` });
  if (needsSearch && !tools.some(({ type }) => type === 'web_search_preview'))
    throw new Refusal(
      `Deep research models require at least one of 'web_search_preview', 'mcp', or 'file_search' tools.`,
    );
  const input = listOf(body['input']);
  assertInput(input, body, encrypted);
  const isThinking = effort !== 'none';
  const secret = `gAAAA${encrypted.size}`;
  const include = Array.isArray(body['include']) ? body['include'] : [];
  const wantsSecret = isThinking && include.includes('reasoning.encrypted_content');
  if (wantsSecret) encrypted.add(secret);
  const thought = { reasoning: summary === undefined ? '' : 'I look it up.' };
  const pieces = [...(isThinking ? [thought] : []), ...choose(body)];
  const custom = tools.flatMap((tool) => (tool['type'] === 'custom' ? [String(tool['name'])] : []));
  return sendResponses({ pieces, custom, ...(wantsSecret && { encrypted: secret }) });
}

const TEXT: Readonly<Record<string, string>> = {
  user: 'input_text',
  developer: 'input_text',
  assistant: 'output_text',
};

function assertInput(input: readonly Body[], body: Body, encrypted: ReadonlySet<string>): void {
  const idsOf = (type: string) => new Set(input.flatMap((item) => (item['type'] === type ? [item['call_id']] : [])));
  for (const kind of ['function', 'custom_tool']) {
    const [name, calls, results] = [kind.replace('_', ' '), idsOf(`${kind}_call`), idsOf(`${kind}_call_output`)];
    for (const id of results)
      if (!calls.has(id)) throw new Refusal(`No tool call found for ${name} call output with call_id ${String(id)}.`);
    for (const id of calls)
      if (!results.has(id)) throw new Refusal(`No tool output found for ${name} call ${String(id)}.`);
  }
  for (const [at, item] of input.entries()) {
    if (item['type'] === 'message') assertParts(item, at);
    if (item['type'] !== 'reasoning') continue;
    const secret = item['encrypted_content'];
    if (secret === undefined && body['store'] === false)
      throw new Refusal(
        `Item with id '${String(item['id'])}' not found. Items are not persisted when \`store\` is set to false.`,
        { status: 404, param: 'input' },
      );
    if (!encrypted.has(String(secret)))
      throw new Refusal('The encrypted content could not be verified.', { code: 'invalid_encrypted_content' });
    const next = input[at + 1];
    const isCall = next?.['type'] === 'function_call' || next?.['type'] === 'custom_tool_call';
    if (!isCall && next?.['role'] !== 'assistant')
      throw new Refusal(`Item of type 'reasoning' was provided without its required following item.`);
  }
}

function assertParts({ role, content }: Body, at: number): void {
  for (const { type } of listOf(content))
    if (String(type).endsWith('_text') && type !== TEXT[String(role)])
      throw new Refusal(`Invalid value: '${String(type)}'.`, {
        param: `input[${at}].content[0]`,
        code: 'invalid_value',
      });
}

/** API of each request by its path, without the vendor's prefix. */
export function apisOf(requests: readonly RecordedRequest[]): readonly string[] {
  return requests.map(({ path }) => (path.endsWith('/responses') ? 'responses' : 'chat'));
}
