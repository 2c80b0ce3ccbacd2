/** Features of each dialect's requests, one per row of the tables in `docs/dialects`. */
export interface DialectFeature {
  readonly title: string;
  /** Merged into the dialect's plain request. */
  readonly body: object;
  /** Canonical field of the feature, for emulation by providers. */
  readonly field?: string;
  /** Pattern in the vendor's body if the feature is supported, for fields that no table of a provider names. */
  readonly kept?: RegExp;
}

export interface DialectFeatures {
  readonly plain: object;
  readonly features: readonly DialectFeature[];
}

const PNG = 'iVBORw0KGgo=';
const PDF = 'JVBERi0=';
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const FUNCTION = { name: 'look', description: 'Looks.', parameters: SCHEMA };
const chatTool = { type: 'function', function: FUNCTION };
const anthropicTool = { name: 'look', description: 'Looks.', input_schema: SCHEMA };
const user = (content: unknown) => [{ role: 'user', content }];
const contents = (part: object) => [{ role: 'user', parts: [{ text: 'Look.' }, part] }];
const text = { type: 'text', text: 'Look.' };
const tools = [anthropicTool];

const MESSAGES: DialectFeatures = {
  plain: { max_tokens: 2000, messages: user('Hi') },
  features: [
    { title: 'text, `system`, `max_tokens`', body: { system: 'Be brief.' } },
    { title: '`temperature`', body: { temperature: 0.5 }, field: 'temperature' },
    { title: '`top_k`', body: { top_k: 5 }, kept: /"top_?k"/i },
    { title: '`stop_sequences`', body: { stop_sequences: ['END'] }, field: 'stop' },
    { title: '`metadata.user_id`', body: { metadata: { user_id: 'u' } }, field: 'user' },
    { title: '`tools`', body: { tools }, field: 'tools' },
    { title: '`tool_choice: any`', body: { tools, tool_choice: { type: 'any' } }, field: 'tool_choice' },
    {
      title: '`disable_parallel_tool_use`',
      body: { tools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      field: 'parallel_tool_calls',
    },
    { title: '`thinking`', body: { thinking: { type: 'enabled', budget_tokens: 1500 } }, field: 'reasoning_effort' },
    {
      title: '`output_config.format`',
      body: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
      field: 'response_format',
    },
    {
      title: 'images',
      body: {
        messages: user([text, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }]),
      },
    },
    {
      title: 'PDF documents',
      body: {
        messages: user([
          text,
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF } },
        ]),
      },
    },
    {
      title: '`cache_control`',
      body: { messages: user([{ ...text, cache_control: { type: 'ephemeral' } }]) },
      kept: /cache_control/,
    },
    { title: '`context_management`', body: { context_management: { edits: [] } }, kept: /context_management/ },
    { title: 'server tools (`web_search_…`)', body: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] } },
  ],
};

const RESPONSES_TOOL = { type: 'function', ...FUNCTION, strict: true };
const RESPONSES: DialectFeatures = {
  plain: { input: 'Hi', store: false },
  features: [
    { title: 'text, `instructions`', body: { instructions: 'Be brief.' } },
    { title: '`max_output_tokens`', body: { max_output_tokens: 99 }, field: 'max_completion_tokens' },
    { title: '`temperature`', body: { temperature: 0.5 }, field: 'temperature' },
    { title: 'function tools', body: { tools: [RESPONSES_TOOL] }, field: 'tools' },
    {
      title: 'custom tools (`apply_patch`)',
      body: { tools: [{ type: 'custom', name: 'apply_patch', description: 'Edits.' }] },
      field: 'tools',
    },
    {
      title: 'namespaces',
      body: { tools: [{ type: 'namespace', name: 'files', description: 'Files.', tools: [RESPONSES_TOOL] }] },
      field: 'tools',
    },
    {
      title: '`tool_choice: required`',
      body: { tools: [RESPONSES_TOOL], tool_choice: 'required' },
      field: 'tool_choice',
    },
    {
      title: '`parallel_tool_calls: false`',
      body: { tools: [RESPONSES_TOOL], parallel_tool_calls: false },
      field: 'parallel_tool_calls',
    },
    { title: '`reasoning.effort`', body: { reasoning: { effort: 'low' } }, field: 'reasoning_effort' },
    {
      title: '`text.format`',
      body: { text: { format: { type: 'json_schema', name: 'x', schema: SCHEMA, strict: true } } },
      field: 'response_format',
    },
    {
      title: 'images',
      body: {
        input: user([
          { type: 'input_text', text: 'Look.' },
          { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
        ]),
      },
    },
    {
      title: 'PDF files',
      body: {
        input: user([{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` }]),
      },
    },
    { title: '`truncation: auto`', body: { truncation: 'auto' }, kept: /truncation/ },
    { title: 'server tools (`web_search`)', body: { tools: [{ type: 'web_search' }] } },
  ],
};

const config = (generationConfig: object) => ({ generationConfig });
const GEMINI_TOOLS = [
  {
    functionDeclarations: [
      { name: 'look', description: 'Looks.', parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } } } },
    ],
  },
];
const GEMINI: DialectFeatures = {
  plain: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
  features: [
    { title: 'text, `systemInstruction`', body: { systemInstruction: { parts: [{ text: 'Be brief.' }] } } },
    { title: '`maxOutputTokens`', body: config({ maxOutputTokens: 99 }), field: 'max_completion_tokens' },
    { title: '`temperature`', body: config({ temperature: 0.5 }), field: 'temperature' },
    { title: '`topK`', body: config({ topK: 5 }), kept: /"top_?k"/i },
    { title: '`stopSequences`', body: config({ stopSequences: ['END'] }), field: 'stop' },
    { title: '`seed`', body: config({ seed: 1 }), field: 'seed' },
    { title: '`candidateCount: 2`', body: config({ candidateCount: 2 }), field: 'n' },
    { title: '`functionDeclarations`', body: { tools: GEMINI_TOOLS }, field: 'tools' },
    {
      title: '`functionCallingConfig: ANY`',
      body: { tools: GEMINI_TOOLS, toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
      field: 'tool_choice',
    },
    {
      title: '`thinkingConfig`',
      body: config({ thinkingConfig: { thinkingBudget: 1024 } }),
      field: 'reasoning_effort',
    },
    {
      title: '`responseJsonSchema`',
      body: config({ responseMimeType: 'application/json', responseJsonSchema: SCHEMA }),
      field: 'response_format',
    },
    { title: 'images', body: { contents: contents({ inlineData: { mimeType: 'image/png', data: PNG } }) } },
    { title: 'PDF files', body: { contents: contents({ inlineData: { mimeType: 'application/pdf', data: PDF } }) } },
    { title: 'sound', body: { contents: contents({ inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } }) } },
    {
      title: '`safetySettings`',
      body: { safetySettings: [{ category: 'HARM_CATEGORY_HATE_SPEECH', threshold: 'BLOCK_NONE' }] },
    },
    { title: 'server tools (`googleSearch`)', body: { tools: [{ googleSearch: {} }] } },
  ],
};

const generate = (generation_config: object) => ({ generation_config });
const interactionTool = { type: 'function', name: 'lookup', parameters: SCHEMA };
const said = (...more: object[]) => ({ input: [{ type: 'text', text: 'Look.' }, ...more] });

const INTERACTIONS: DialectFeatures = {
  plain: { input: 'Hi' },
  features: [
    { title: 'text, `system_instruction`', body: { system_instruction: 'Be brief.' } },
    { title: '`max_output_tokens`', body: generate({ max_output_tokens: 99 }), field: 'max_completion_tokens' },
    { title: '`temperature`', body: generate({ temperature: 0.5 }), field: 'temperature' },
    { title: '`stop_sequences`', body: generate({ stop_sequences: ['END'] }), field: 'stop' },
    { title: '`seed`', body: generate({ seed: 1 }), field: 'seed' },
    { title: 'functions', body: { tools: [interactionTool] }, field: 'tools' },
    {
      title: '`tool_choice: any`',
      body: { tools: [interactionTool], ...generate({ tool_choice: 'any' }) },
      field: 'tool_choice',
    },
    { title: '`thinking_level`', body: generate({ thinking_level: 'low' }), field: 'reasoning_effort' },
    {
      title: '`response_format` with a JSON Schema',
      body: { response_format: { type: 'text', mime_type: 'application/json', schema: SCHEMA } },
      field: 'response_format',
    },
    { title: 'images', body: said({ type: 'image', mime_type: 'image/png', data: PNG }) },
    { title: 'PDF files', body: said({ type: 'document', mime_type: 'application/pdf', data: PDF }) },
    { title: 'sound', body: said({ type: 'audio', mime_type: 'audio/wav', data: 'UklGRg==' }) },
    { title: '`safety_settings`', body: { safety_settings: [{ type: 'hate_speech', threshold: 'block_none' }] } },
    { title: 'server tools (`google_search`)', body: { tools: [{ type: 'google_search' }] } },
  ],
};

const COMPLETIONS: DialectFeatures = {
  plain: { prompt: 'Once upon' },
  features: [
    { title: '`prompt`', body: {} },
    { title: '`suffix`', body: { suffix: 'the end' } },
    { title: '`max_tokens`', body: { max_tokens: 16 }, field: 'max_completion_tokens' },
    { title: '`temperature`', body: { temperature: 0.5 }, field: 'temperature' },
    { title: '`stop`', body: { stop: ['END'] }, field: 'stop' },
    { title: '`seed`', body: { seed: 1 }, field: 'seed' },
    { title: '`n: 2`', body: { n: 2 }, field: 'n' },
    { title: '`logprobs`', body: { logprobs: 2 }, field: 'logprobs' },
  ],
};

const CHAT: DialectFeatures = {
  plain: { messages: user('Hi') },
  features: [
    { title: 'text', body: {} },
    { title: '`max_completion_tokens`', body: { max_completion_tokens: 99 }, field: 'max_completion_tokens' },
    { title: '`temperature`', body: { temperature: 0.5 }, field: 'temperature' },
    { title: '`stop`', body: { stop: ['END'] }, field: 'stop' },
    { title: '`tools`', body: { tools: [chatTool] }, field: 'tools' },
    { title: '`tool_choice: required`', body: { tools: [chatTool], tool_choice: 'required' }, field: 'tool_choice' },
    { title: '`reasoning_effort`', body: { reasoning_effort: 'low' }, field: 'reasoning_effort' },
    {
      title: '`response_format: json_schema`',
      body: { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA } } },
      field: 'response_format',
    },
    {
      title: 'images',
      body: { messages: user([text, { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }]) },
    },
    {
      title: 'PDF files',
      body: {
        messages: user([
          text,
          { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` } },
        ]),
      },
    },
  ],
};

const options = (one: object) => ({ options: one });
const OLLAMA: DialectFeatures = {
  plain: { messages: user('Hi'), stream: false },
  features: [
    { title: 'text', body: {} },
    { title: '`num_predict`', body: options({ num_predict: 99 }), field: 'max_completion_tokens' },
    { title: '`temperature`', body: options({ temperature: 0.5 }), field: 'temperature' },
    { title: '`top_k`', body: options({ top_k: 5 }), kept: /"top_?k"/i },
    { title: '`stop`', body: options({ stop: ['END'] }), field: 'stop' },
    { title: '`seed`', body: options({ seed: 1 }), field: 'seed' },
    { title: '`num_ctx`', body: options({ num_ctx: 4096 }), kept: /num_ctx/ },
    { title: '`tools`', body: { tools: [chatTool] }, field: 'tools' },
    { title: '`think`', body: { think: 'low' }, field: 'reasoning_effort' },
    { title: '`format` with a JSON Schema', body: { format: SCHEMA }, field: 'response_format' },
    { title: 'images', body: { messages: [{ role: 'user', content: 'Look.', images: [PNG] }] } },
  ],
};

export const DIALECT_FEATURES: Readonly<Record<string, DialectFeatures>> = Object.freeze({
  chat: CHAT,
  messages: MESSAGES,
  responses: RESPONSES,
  gemini: GEMINI,
  interactions: INTERACTIONS,
  completions: COMPLETIONS,
  ollama: OLLAMA,
  // OpenAI's format, with additional headers.
  portkey: CHAT,
});
