// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are lines of code
import type { MutatedFile } from './mutants.ts';

const DIALECTS = ['test/conformance/dialects.test.ts'];
const PROVIDERS = ['test/conformance/providers.test.ts'];
const STORES = ['test/plugins/stores/memory.test.ts'];
const BUILT_INS = ['test/conformance/built-ins.test.ts'];
const SPEECH = (vendor: string): readonly string[] => [`test/plugins/tts/${vendor}.test.ts`];

/** Wrong lines in our own plugins that the published kits must detect: `docs/plugins/12-testing.md`. */
export const KITS: readonly MutatedFile[] = [
  {
    room: 'kits: formats of clients',
    file: 'plugins/dialects/completions/index.ts',
    tests: DIALECTS,
    mutants: [
      ['a response that was cut ends as a whole one', "  length: 'length',", "  length: 'stop',"],
      ['a filtered response ends as a whole one', "  content_filter: 'content_filter',", "  content_filter: 'stop',"],
      [
        'text comes twice',
        "text: lead + (message.content ?? message.refusal ?? ''),",
        "text: lead + (message.content ?? message.refusal ?? '') + (message.content ?? ''),",
      ],
      ['a refusal is lost', "(message.content ?? message.refusal ?? '')", "(message.content ?? '')"],
      [
        'a streamed refusal is lost',
        "const own = `${delta.content ?? ''}${delta.refusal ?? ''}`;",
        "const own = `${delta.content ?? ''}`;",
      ],
      ['usage is lost', '...(response.usage && { usage: response.usage }),', ''],
      [
        'a stream does not say why it ended',
        'finish_reason: finish_reason ? FINISH_REASON[finish_reason] : null,',
        'finish_reason: null,',
      ],
      ['a stream has no end', "end: () => 'data: [DONE]\\n\\n',", "end: () => '',"],
      [
        'every error is 500',
        'error: (error, requestId) => ({ body: error.toBody(requestId) }),',
        'error: (error, requestId) => ({ body: error.toBody(requestId), status: 500 }),',
      ],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/dialects/kit/chat-shape.ts',
    tests: DIALECTS,
    mutants: [
      ['a stream has no end', "end: () => 'data: [DONE]\\n\\n',", "end: () => '',"],
      [
        'a stream that failed ends as a whole one',
        'fail: (error, requestId) => frame(error.toBody(requestId)),',
        'fail: (error, requestId) => `${frame(error.toBody(requestId))}data: [DONE]\\n\\n`,',
      ],
      ['usage is lost', '!usage || stream_options?.include_usage === true', '!usage'],
      [
        'chunks come twice',
        "push: (chunk) => (isWanted(chunk) ? frame(writeChatChunk(chunk, context)) : ''),",
        "push: (chunk) => (isWanted(chunk) ? frame(writeChatChunk(chunk, context)).repeat(2) : ''),",
      ],
      [
        'what keeps a connection alive is half a frame',
        "keepAlive: ': keep-alive\\n\\n',",
        "keepAlive: ': keep-alive',",
      ],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/formats/anthropic/write-response.ts',
    tests: DIALECTS,
    mutants: [
      ['all responses have one id', 'return `msg_${id}`;', 'return `msg_${id.slice(0, 0)}1`;'],
      ['every response is whole', 'finishReason: choice?.finish_reason,', "finishReason: 'stop',"],
      ['a call ends as words do', "hasCalls: content.some(({ type }) => type === 'tool_use'),", 'hasCalls: false,'],
      ['a name comes twice', 'name: called.name,', 'name: called.name + called.name,'],
      ['arguments are lost', 'input: readArguments(called.arguments),', 'input: {},'],
      ['a refusal is lost', "return refusal ? [...shown, { type: 'text', text: refusal }] : shown;", 'return shown;'],
      [
        'text comes twice',
        "const text = content || transcriptOf(message) || '';",
        "const text = (content || transcriptOf(message) || '').repeat(2);",
      ],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/formats/anthropic/write-stream.ts',
    tests: DIALECTS,
    mutants: [
      ['every stream is whole', 'finishReason: this.#finishReason,', "finishReason: 'stop',"],
      ['a streamed call ends as words do', 'hasCalls: this.#hasCalls,', 'hasCalls: false,'],
      ['blocks have no end', 'this.#blocks.end(),', "'',"],
      ['the last event is missing', "      frame({ type: 'message_stop' }),\n", ''],
      [
        'an error comes after an end',
        'return failFrame(error, requestId);',
        'return this.end() + failFrame(error, requestId);',
      ],
      ['usage is lost', 'if (chunk.usage) this.#usage = chunk.usage;', ''],
      [
        'all streams write into one queue',
        'readonly #blocks = new BlockQueue();',
        'readonly #blocks = ((globalThis as { queue?: BlockQueue }).queue ??= new BlockQueue());',
      ],
      [
        'text comes twice',
        "{ type: 'text', text: '' }, { type: 'text_delta', text });",
        "{ type: 'text', text: '' }, { type: 'text_delta', text }, { type: 'text_delta', text });",
      ],
      ['a refusal is lost', '      this.#writeRefusal(delta.refusal),\n', ''],
      [
        'arguments are lost',
        "return begun + this.#blocks.extend(key, { type: 'input_json_delta', partial_json: text }, text);",
        'return begun;',
      ],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/formats/google/write-response.ts',
    tests: DIALECTS,
    mutants: [
      ['all responses have one id', 'responseId: context.id,', "responseId: 'response',"],
      [
        'every response is whole',
        'finishReason: finishOf(choice.finish_reason, choice.finish, isBroken),',
        "finishReason: 'STOP',",
      ],
      [
        'text comes twice',
        "const text = `${message.content ?? ''}${message.refusal ?? ''}`;",
        "const text = `${message.content ?? ''}${message.content ?? ''}${message.refusal ?? ''}`;",
      ],
      [
        'thinking is counted twice',
        'candidatesTokenCount: Math.max(0, usage.completion_tokens - thoughts),',
        'candidatesTokenCount: usage.completion_tokens,',
      ],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/formats/google/write-stream.ts',
    tests: DIALECTS,
    mutants: [
      ['all streams have one id', 'responseId: context.id,', "responseId: 'response',"],
      ['every stream is whole', 'if (finish_reason) reason = finish_reason;', ''],
      [
        'arguments are their last piece',
        "call.text += delta.function?.arguments ?? '';",
        "call.text = delta.function?.arguments ?? '';",
      ],
      ['usage is lost', 'if (chunk.usage) usage = usageOf(chunk.usage);', ''],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/formats/google/read-stream.ts',
    tests: PROVIDERS,
    mutants: [
      [
        'the vendor’s streams share their candidates',
        'const candidates = new Map<number, CandidateState>();',
        'const candidates = ((globalThis as { own?: Map<number, CandidateState> }).own ??= new Map());',
      ],
      ['the vendor’s usage is lost', 'if (counted) usage = laterUsage(usage, counted);', ''],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/formats/openai-responses/write-response.ts',
    tests: DIALECTS,
    mutants: [
      ['all responses have one id', 'return `resp_${id}`;', 'return `resp_${id.slice(0, 0)}1`;'],
      [
        'a response that was cut is completed',
        "return { status: 'incomplete', incomplete: cut[0] };",
        "return { status: 'completed' };",
      ],
      ['usage is lost', 'usage: usage ? writeUsage(usage) : null,', 'usage: null,'],
      ['output is counted as input', 'output_tokens: completion_tokens,', 'output_tokens: prompt_tokens,'],
    ],
  },
  {
    room: 'kits: formats of clients',
    file: 'plugins/formats/openai-responses/write-stream.ts',
    tests: DIALECTS,
    mutants: [
      ['every stream is completed', 'finish = choice.finish_reason ?? finish;', ''],
      ['items have no end', '      output.close(finish);\n', ''],
      ['an event of the order is missing', "    emit('response.in_progress', { response });\n", ''],
      ['events have one number', 'sequence_number: sequence++,', 'sequence_number: sequence,'],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/formats/openai-chat/response.ts',
    tests: PROVIDERS,
    mutants: [
      [
        'every end is a stop',
        "return meaning === 'stop' && calledTools && !keepsStop ? 'tool_calls' : meaning;",
        "return 'stop';",
      ],
      ['text comes twice', 'content: content ?? null,', 'content: content ? content + content : null,'],
      ['calls of tools are lost', 'if (readCalls) message.tool_calls = readCalls;', ''],
      ['thinking is lost', 'if (reasoning !== undefined) message.reasoning_content = reasoning;', ''],
      ['an error with status 200 is a response', 'if (failure) throw new StreamFailure(failure);', ''],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/formats/openai-chat/stream.ts',
    tests: PROVIDERS,
    mutants: [
      ['an error in a stream is lost', 'if (failure) throw new StreamFailure(failure);', ''],
      ['usage of streams is lost', 'if (counted) usage = laterUsage(usage, counted);', ''],
      [
        'streams share their choices',
        'const choices = new Map<number, ChoiceState>();',
        'const choices = ((globalThis as { own?: Map<number, ChoiceState> }).own ??= new Map());',
      ],
      [
        'a stream that broke off is complete',
        'complete: choices.size > 0 && [...choices.values()].every(({ finished }) => finished),',
        'complete: true,',
      ],
      [
        'what comes after the end is read',
        "if (done || json === '' || json.startsWith(':')) return [];",
        "if (json === '' || json.startsWith(':')) return [];",
      ],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/formats/openai-chat/request.ts',
    tests: PROVIDERS,
    mutants: [
      [
        'E60: what is emulated is not sent',
        "else if (rule.rule === 'emulated') emulated.push([field, value, rule.apply]);",
        "else if (rule.rule === 'emulated') continue;",
      ],
      [
        'E60: what is renamed has always one value',
        'if (request[to] === undefined || request[to] === null) body[to] = rule.convert ? rule.convert(value) : value;',
        'body[to] = 1;',
      ],
      ['what passes is not sent', 'if (rule === PASSED) body[field] = value;', 'if (rule === PASSED) continue;'],
      [
        'what is converted is lost',
        'if (sent !== undefined) body[field] = sent;',
        'if (sent === 1e9) body[field] = sent;',
      ],
      ['what is refused is dropped', "if (rule.rule === 'refused') throw refusal(field, rule.note);", ''],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/providers/deepseek.ts',
    tests: PROVIDERS,
    mutants: [
      [
        'E60: the schema of a response is ignored',
        'messages: (messages, request) => withSchema(withThinking(messages), request),',
        'messages: (messages) => withThinking(messages),',
      ],
      ['E60: tools are sent empty', 'return { body: { tools } };', 'return { body: { tools: [] } };'],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/formats/google/read-response.ts',
    tests: PROVIDERS,
    mutants: [
      [
        'every end is a stop',
        "...readEnd(state.reason ?? 'STOP', state, isDelivered),",
        "...readEnd('STOP', state, isDelivered),",
      ],
      [
        'an error with status 200 is a response',
        "if (response['error']) throw new StreamFailure(geminiFailure(200, response, {}));",
        '',
      ],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/formats/anthropic/read-response.ts',
    tests: PROVIDERS,
    mutants: [
      ['text comes twice', 'content: formed ?? text,', 'content: (formed ?? text).repeat(2),'],
      ['calls of tools are lost', '...(calls.length > 0 && { tool_calls: calls }),', ''],
      [
        'an error with status 200 is a response',
        "if (message['type'] === 'error' || message['error']) throw new StreamFailure(anthropicFailure(200, body, {}));",
        '',
      ],
      ['every end is the caller’s own', 'finish_reason: finish,', "finish_reason: 'stop',"],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/providers/anthropic.ts',
    tests: PROVIDERS,
    mutants: [
      ['the key stands beside the codec', "vendor: 'anthropic',", "vendor: String(config['apiKey']),"],
      ['the environment chooses', "vendor: 'anthropic',", "vendor: process.env['VENDOR'] ?? 'anthropic',"],
    ],
  },
  {
    room: 'kits: vendors',
    file: 'plugins/providers/gemini.ts',
    tests: PROVIDERS,
    mutants: [
      [
        'it writes to the console',
        "tierHeader: 'x-gemini-service-tier',",
        "tierHeader: (console.log('set up'), 'x-gemini-service-tier'),",
      ],
    ],
  },
  {
    room: 'kits: stores',
    file: 'plugins/stores/memory/atomic.ts',
    tests: STORES,
    mutants: [
      [
        'members are written later than told',
        'add: async (name, member, max) => add(name, member, max),',
        "add: async (name, member, max) => (setTimeout(() => add(name, member, max), 50), 'added' as const),",
      ],
      ['a set that is full takes more', "if (set.size >= max) return 'full';", ''],
      [
        'what was removed stays',
        'const removed = set?.delete(member) ?? false;',
        'const removed = set?.has(member) ?? false;',
      ],
      [
        'a page begins with the last one of the page before',
        'byBytes(member, after) > 0',
        'byBytes(member, after) >= 0',
      ],
      [
        'members have no order',
        'const members = [...(sets.get(name) ?? [])].sort(byBytes);',
        'const members = [...(sets.get(name) ?? [])];',
      ],
      [
        'it answers after its end',
        'isClosed() ? Promise.reject(storeClosed())',
        'false ? Promise.reject(storeClosed())',
      ],
      [
        'what nobody settles is held for ever',
        "(state === 'held' && until < now ? [keys] : [])",
        "(state === 'held' && until < 0 ? [keys] : [])",
      ],
      ['the books begin with their oldest line', '        .reverse()\n', ''],
      ['what was settled is settled again', 'ended.set(key, request);', ''],
      ['calls are not written down', 'if (record) records.write(keys.name, keys.ref, record);', ''],
      ['budgets are spent by nobody', 'for (const row of rows) budgets.set(row.id, row);', ''],
    ],
  },
  {
    room: 'kits: guardrails',
    file: 'plugins/guardrails/words.ts',
    tests: BUILT_INS,
    mutants: [
      ['it knows a word in one case alone', 'return plain.toLowerCase();', 'return plain;'],
      [
        'a refusal repeats what it refuses',
        "throw refusal(api.instance, 'a word that is not allowed', place);",
        'throw refusal(api.instance, `the word ${_text}`, place);',
      ],
      [
        'it refuses with a bug',
        "throw refusal(api.instance, 'a word that is not allowed', place);",
        "throw new Error('not allowed');",
      ],
      [
        'what it finds is in the log',
        'replace(_text, place) {',
        "replace(_text, place) { api.log.info({ text: _text }, 'found');",
      ],
      ['it writes to the console', 'replace(_text, place) {', "replace(_text, place) { console.error('found');"],
    ],
  },
  {
    room: 'kits: guardrails',
    file: 'plugins/guardrails/pii/index.ts',
    tests: BUILT_INS,
    mutants: [
      ['what it masks is still there', ': `[${kind.toUpperCase()}]`;', ': `[${text}]`;'],
      [
        'it refuses with a code for failures',
        "if (action === 'block') throw refusal(api.instance, KINDS[kind], place);",
        "if (action === 'block') throw new Error(KINDS[kind]);",
      ],
    ],
  },
  {
    room: 'kits: guardrails',
    file: 'plugins/guardrails/kit/guard.ts',
    tests: BUILT_INS,
    mutants: [
      [
        'streams pass unseen',
        "handler: (call) => guard(call, 'response')?.stream() });",
        'handler: () => undefined });',
      ],
      [
        'whole responses pass unseen',
        "handler: (call, response) => guard(call, 'response')?.response(response),",
        'handler: () => undefined,',
      ],
      ['requests pass unseen', "  api.hook('prepare', prepare);\n", ''],
    ],
  },
  {
    room: 'kits: guardrails',
    file: 'plugins/guardrails/kit/text-transform.ts',
    tests: BUILT_INS,
    mutants: [
      [
        'what is held back is lost at the end',
        'return [...this.#open].flatMap(([index, open]) => this.#release(index, open));',
        'return [];',
      ],
      [
        'streams share what they hold back',
        'readonly #texts = new Map<string, OpenText>();',
        'readonly #texts = ((globalThis as { own?: Map<string, OpenText> }).own ??= new Map());',
      ],
      [
        'arguments of tools are lost on a stream',
        'for (const { index, function: part, custom } of delta.tool_calls ?? []) {',
        'for (const { index, function: part, custom } of (delta.tool_calls ?? []).slice(0, 0)) {',
      ],
      [
        'only the first choice is looked at',
        'const choices = response.choices.map((choice) => {',
        'const choices = response.choices.map((choice) => {\n        if (choice.index > 0) return choice;',
      ],
      [
        'what comes out late has no head',
        '{ id, object, created, model, choices: [{ index, delta: deltaOf(text)',
        '{ object, created, model, choices: [{ index, delta: deltaOf(text)',
      ],
    ],
  },
  {
    room: 'kits: guardrails',
    file: 'contract/texts.ts',
    tests: BUILT_INS,
    mutants: [
      [
        'thinking is not looked at',
        'media_type mime_type mimeType order stream`',
        'media_type mime_type mimeType order stream reasoning_content`',
      ],
    ],
  },
  {
    room: 'kits: guardrails',
    file: 'plugins/guardrails/kit/text-stream.ts',
    tests: BUILT_INS,
    mutants: [
      [
        'nothing is held back',
        'const until = isLast ? text.length : this.#knownUntil(text, from);',
        'const until = text.length;',
      ],
      [
        'what goes on comes twice',
        'out += text.slice(at, until);',
        'out += text.slice(at, until) + text.slice(at, until);',
      ],
    ],
  },
  {
    room: 'kits: callers',
    file: 'plugins/auth/jwt/index.ts',
    tests: BUILT_INS,
    mutants: [
      [
        'a credential is in the log',
        "log.debug({ reason: (error as Error).message }, 'token rejected');",
        "log.debug({ token }, 'token rejected');",
      ],
      [
        'a refusal repeats the credential',
        "'token rejected');\n      throw invalidToken();",
        "'token rejected');\n      throw new GatewayError('invalid_token', `${token} is not valid.`);",
      ],
      [
        'a wrong one is a bug',
        "'token rejected');\n      throw invalidToken();",
        "'token rejected');\n      throw error;",
      ],
      [
        'signatures are not checked',
        'const { payload } = await checkSignature(token, key, options, now);',
        'const payload = decodeJwt(token);',
      ],
      [
        'callers whose credentials begin alike are one',
        "const digest = hash('sha256', token, 'base64');",
        "const digest = hash('sha256', token.slice(0, 30), 'base64');",
      ],
      ['all callers are one', 'userId: `${userPrefix}${userId}`,', 'userId: `${userPrefix}user`,'],
      ['a credential never ends', 'currentDate: new Date(now),', 'currentDate: new Date(0),'],
    ],
  },
  {
    room: 'kits: speech',
    file: 'plugins/tts/openai.ts',
    tests: SPEECH('openai'),
    mutants: [
      ['the end of a stream is not told', 'return { done: true, ...(input', 'return { done: false, ...(input'],
      ['an account without money is another failure', "? { class: 'billing' }", '? {}'],
      ['a field has the vendor’s name in errors', '{ param: PARAM[param] ?? param }', '{ param }'],
      ['half of the text is spoken', '        input: text,', '        input: text.slice(0, text.length / 2),'],
      ['an error in a stream is lost', 'if (event.error) throw new StreamFailure(readError(500, event, {}));', ''],
    ],
  },
  {
    room: 'kits: speech',
    file: 'plugins/tts/kit/options.ts',
    tests: SPEECH('openai'),
    mutants: [
      [
        'options that it does not have do nothing',
        'if ((allowed as readonly string[]).includes(name)) continue;',
        'if ((allowed as readonly string[]).includes(name) || name !== "") continue;',
      ],
    ],
  },
  {
    room: 'kits: speech',
    file: 'plugins/tts/deepgram.ts',
    tests: SPEECH('deepgram'),
    mutants: [
      [
        'the text is in the address',
        'path: `/v1/speak?${query}`,',
        'path: `/v1/speak?${query}&text=${encodeURIComponent(text)}`,',
      ],
      [
        'a call changes those after it',
        'body: { text },',
        'body: { text, seen: (OUTPUT as { n?: number }) && Math.random() },',
      ],
    ],
  },
  {
    room: 'kits: speech',
    file: 'plugins/tts/elevenlabs.ts',
    tests: SPEECH('elevenlabs'),
    mutants: [
      ['a voice leads elsewhere', 'if (!VOICE_ID.test(input.voice)) {', 'if (input.voice === undefined) {'],
      ['an account without money is a wrong key', "  quota_exceeded: { class: 'billing' },\n", ''],
    ],
  },
  {
    room: 'kits: credentials',
    file: 'plugins/providers/kit/credentials/renewed.ts',
    tests: ['test/conformance/credentials.test.ts'],
    mutants: [
      ['E68: each request asks for one', '    flight ??= fetch()', '    flight = fetch()'],
      ['E68: it is renewed at its end', 'if (held.endsAt - time < aheadMs &&', 'if (held.endsAt - time < 0 &&'],
      ['E68: requests wait while it is renewed', 'renew().catch(() => undefined);', 'return renew();'],
      [
        'E68: what had ended is used',
        'if (lease.endsAt <= now()) throw failed(',
        'if (lease.endsAt < 0) throw failed(',
      ],
      [
        'E68: an issuer that fails is asked by each request',
        'if (time < restsUntil && !flight)',
        'if (time < 0 && !flight)',
      ],
      [
        'E68: one that is new is asked for anew when it is refused',
        'if (held && now() - held.since < YOUNG_MS) return false;',
        '',
      ],
      [
        'E68: an issuer is waited for without an end',
        'timeout: { request: TIMEOUT_MS },',
        'timeout: { request: undefined },',
      ],
      [
        'E68: an error is none that anyone knows',
        'return new StreamFailure({ class: type, message });',
        'return new Error(message) as StreamFailure;',
      ],
      [
        'E68: a refusal is a failure of the network',
        "statusCode >= 500 || statusCode === 429 ? 'upstream_error' : 'authentication'",
        "statusCode >= 400 ? 'upstream_error' : 'authentication'",
      ],
    ],
  },
  {
    room: 'kits: credentials',
    file: 'plugins/providers/kit/credentials/aws.ts',
    tests: ['test/conformance/credentials.test.ts'],
    mutants: [
      [
        'E68: keys end by the clock of another',
        "Date.now() + Date.parse(readString(Expiration) ?? '') - clockMs",
        "Date.parse(readString(Expiration) ?? '')",
      ],
      ['E68: the clock of AWS is passed over', 'skewMs = offMs;', 'void offMs;'],
      ['E68: a body is not signed', "sha256(request.body ?? ''),", "sha256(''),"],
    ],
  },
  {
    room: 'kits: managers of secrets',
    file: 'plugins/secrets/vault.ts',
    tests: ['test/conformance/secrets.test.ts'],
    mutants: [
      [
        'any path is asked for',
        "if (!/^[\\w.~@+-]+(\\/[\\w.~@+-]+)+$/.test(at) || at.split('/').some((part) => /^\\.+$/.test(part)))",
        'if (at === undefined)',
      ],
      [
        'a refusal repeats the token',
        '`Vault returned status ${statusCode}${',
        "`Vault returned status ${statusCode}${token ?? ''}${",
      ],
    ],
  },
];
