import type { DraftAlias, FieldRule } from './draft.ts';

// Outcome of LiteLLM fields that need no further reading, from https://docs.litellm.ai/docs/proxy/config_settings.

const RETRIES: FieldRule = ['emulated', 'retries are automatic: docs/routing.md#retries'];

const HEALTH: FieldRule = ['emulated', 'failing targets are skipped for a time: docs/routing.md#health'];

const LOGS: FieldRule = ['kept', 'the log contains no prompts, responses or keys, and is JSON without a terminal'];

/** Sections that have no counterpart. */
export const SECTIONS: Readonly<Record<string, FieldRule>> = Object.freeze({
  mcp_servers: ['impossible', 'MCP servers are not supported'],
  credential_list: ['kept', 'its values are set in the deployments that use them'],
  callback_settings: ['impossible', 'use the options of the policy otel: docs/operate.md'],
  prompts: ['impossible', 'prompts are not stored; alias-parameters can set a system message for an alias'],
  vector_store_registry: ['impossible', 'use the agent rag, which searches a folder'],
  search_tools: ['impossible', 'Tollgate has no own search; vendors’ web search is passed on if the key allows it'],
});

/** `litellm_settings`. */
export const LITELLM_SETTINGS: Readonly<Record<string, FieldRule>> = Object.freeze({
  drop_params: [
    'kept',
    'unsupported optional fields are dropped and reported in a header; fields that change the meaning are rejected',
  ],
  modify_params: ['kept', 'requests are adapted to their target'],
  num_retries: RETRIES,
  allowed_fails: HEALTH,
  cooldown_time: HEALTH,
  set_verbose: ['emulated', 'logging: { level: debug }'],
  json_logs: LOGS,
  turn_off_message_logging: LOGS,
  redact_user_api_key_info: LOGS,
  redact_messages_in_exceptions: LOGS,
  max_budget: ['emulated', 'create a budget over all accounts: tollgate budgets create, docs/money.md#budgets'],
  budget_duration: ['emulated', 'the period of that budget'],
  max_end_user_budget: ['emulated', 'budgets of a plan apply to each account: docs/money.md#budgets'],
  default_internal_user_params: ['emulated', 'the limits of defaultPlan'],
  default_key_generate_params: ['emulated', 'the limits of defaultPlan: docs/keys.md'],
  default_team_settings: [
    'emulated',
    'models of keys and plans restrict teams; spans of all teams go to one collector, with tags: docs/keys.md',
  ],
  key_generation_settings: ['emulated', 'roles and scopes restrict who creates keys: docs/keys.md#scopes-and-roles'],
  upperbound_key_generate_params: ['emulated', 'a key cannot exceed the rights of its creator'],
  mcp_aliases: ['impossible', 'MCP servers are not supported'],
  force_ipv4: ['impossible', 'Node.js tries both address families'],
  ssl_verify: ['emulated', 'the option tls of a provider sets your own authority; certificates are always verified'],
});

/** `router_settings`. */
export const ROUTER_SETTINGS: Readonly<Record<string, FieldRule>> = Object.freeze({
  num_retries: RETRIES,
  retry_after: RETRIES,
  retry_policy: RETRIES,
  model_group_retry_policy: RETRIES,
  max_fallbacks: RETRIES,
  allowed_fails: HEALTH,
  allowed_fails_policy: HEALTH,
  cooldown_time: HEALTH,
  disable_cooldowns: ['impossible', 'failing targets are always skipped for a time; a single target is still tried'],
  enable_pre_call_checks: ['kept', 'prompts that are too long go to onOverflow or the next target'],
  redis_host: ['emulated', 'store: redis://… shares keys, limits and target health'],
  redis_port: ['emulated', 'part of store: redis://…'],
  redis_password: ['emulated', 'part of store: redis://…'],
  redis_url: ['emulated', 'store: redis://…'],
  routing_strategy_args: HEALTH,
  enable_tag_filtering: ['impossible', 'create an alias for each tag and add it to the models of keys'],
  tag_filtering_match_any: ['impossible', 'create an alias for each tag and add it to the models of keys'],
  set_verbose: ['emulated', 'logging: { level: debug }'],
});

/** `general_settings`. */
export const GENERAL_SETTINGS: Readonly<Record<string, FieldRule>> = Object.freeze({
  master_key: ['emulated', 'create an operator key: tollgate keys create --user <you> --admin. The old key is invalid'],
  database_url: [
    'emulated',
    'store: postgres://… sets a database for Tollgate’s own tables; import virtual keys with tollgate keys import: docs/config.md#from-another-gateway',
  ],
  database_connection_pool_limit: ['impossible', 'each process has a few connections'],
  database_connection_timeout: ['impossible', 'deadlines of the store are fixed: docs/stores.md'],
  store_model_in_db: ['impossible', 'models are in the file, which a running gateway reloads'],
  store_prompts_in_spend_logs: ['emulated', 'policies: { usage: { … } } can store content: docs/money.md'],
  disable_spend_logs: ['impossible', 'costs are always recorded'],
  forward_client_headers_to_llm_api: [
    'impossible',
    'callers’ headers are not sent to vendors; headers of a provider are an option',
  ],
  enable_jwt_auth: ['emulated', 'auth: { jwt: { issuer, audience } }: docs/keys.md'],
  litellm_jwtauth: ['emulated', 'auth: { jwt: … }: docs/keys.md'],
  alerting: ['emulated', 'policies: { notices: … } sends to Slack, Teams, mail and webhooks: docs/plugins/notices.md'],
  alerting_threshold: ['emulated', 'policies: { notices: … }: docs/plugins/notices.md'],
  alerting_args: ['emulated', 'policies: { notices: … }: docs/plugins/notices.md'],
  background_health_checks: HEALTH,
  health_check_interval: HEALTH,
  max_parallel_requests: ['emulated', 'concurrency of a plan'],
  global_max_parallel_requests: ['emulated', 'the policy overload protects the gateway'],
  max_request_size_mb: ['emulated', 'server: { bodyLimit }'],
  allowed_routes: ['emulated', 'scopes and models of keys: docs/keys.md'],
  allowed_ips: ['emulated', 'addresses of keys: docs/keys.md'],
  custom_auth: ['impossible', 'it is Python; a plugin of the kind auth does the same: docs/plugins.md'],
  completion_model: ['impossible', 'requests without a model are rejected'],
  infer_model_from_keys: ['impossible', 'models are listed by provider and alias'],
  ui_access_mode: ['emulated', 'roles of people and keys: docs/keys.md#scopes-and-roles'],
});

/** `litellm_params` of a deployment. */
export const PARAMS: Readonly<Record<string, FieldRule>> = Object.freeze({
  max_retries: RETRIES,
  num_retries: RETRIES,
  drop_params: ['kept', 'unsupported fields are dropped and reported in a header'],
  max_tokens: ['impossible', 'the caller sets the limit; a budget or the guardrail max-cost limits a call'],
  tags: ['impossible', 'create an alias for each tag and add it to the models of keys'],
  max_parallel_requests: ['impossible', 'Tollgate has limits by key, plan and provider, not by deployment'],
  mock_response: ['impossible', 'the provider echo responds without a vendor'],
  azure_ad_token: ['emulated', 'the option entra of azure signs in; a token expires after an hour and is skipped'],
  aws_role_name: ['emulated', 'the options roleArn and webIdentityTokenFile of aws, or a profile'],
  aws_session_name: ['kept', 'sessions have the name tollgate'],
  aws_web_identity_token: ['emulated', 'the option webIdentityTokenFile of aws sets the file with the token'],
});

/** Variables that LiteLLM reads for a deployment without a key. @see https://docs.litellm.ai/docs/providers */
export const OWN_VARIABLES: Readonly<Record<string, string>> = Object.freeze({
  anthropic: 'ANTHROPIC_API_KEY',
  azure: 'AZURE_API_KEY',
  cerebras: 'CEREBRAS_API_KEY',
  cohere: 'COHERE_API_KEY',
  cohere_chat: 'COHERE_API_KEY',
  deepseek: 'DEEPSEEK_API_KEY',
  fireworks_ai: 'FIREWORKS_AI_API_KEY',
  gemini: 'GEMINI_API_KEY',
  groq: 'GROQ_API_KEY',
  mistral: 'MISTRAL_API_KEY',
  moonshot: 'MOONSHOT_API_KEY',
  openai: 'OPENAI_API_KEY',
  openrouter: 'OPENROUTER_API_KEY',
  perplexity: 'PERPLEXITYAI_API_KEY',
  together_ai: 'TOGETHERAI_API_KEY',
  xai: 'XAI_API_KEY',
});

/** `model_info` of a deployment. */
export const INFO: Readonly<Record<string, FieldRule>> = Object.freeze({
  id: ['emulated', 'the instance and the model form a target'],
  mode: ['kept', 'the route sets the operation'],
  max_tokens: ['kept', 'the table of models has its limits'],
  max_input_tokens: ['kept', 'the table of models has its limits'],
  max_output_tokens: ['kept', 'the table of models has its limits'],
  version: ['kept', 'not needed'],
  description: ['kept', 'not needed'],
  access_groups: ['emulated', 'models of keys and plans'],
  supports_vision: ['kept', 'the table of models has it'],
  supports_function_calling: ['kept', 'the table of models has it'],
});

/** `routing_strategy`: our strategy, and the outcome. */
export const STRATEGY: Readonly<Record<string, readonly [NonNullable<DraftAlias['strategy']>, FieldRule]>> =
  Object.freeze({
    'simple-shuffle': ['weighted', ['kept', 'strategy: weighted']],
    'latency-based-routing': ['least-latency', ['kept', 'strategy: least-latency']],
    'least-busy': ['least-latency', ['emulated', 'strategy: least-latency, by latency instead of number of calls']],
    'usage-based-routing': [
      'weighted',
      ['emulated', 'strategy: weighted; targets with status 429 are skipped for a time'],
    ],
    'usage-based-routing-v2': [
      'weighted',
      ['emulated', 'strategy: weighted; targets with status 429 are skipped for a time'],
    ],
    'cost-based-routing': [
      'weighted',
      ['impossible', 'set onlyWhenCheaper on targets to use them only if they cost less'],
    ],
  });

/** Callbacks by name. */
export const CALLBACKS: Readonly<Record<string, FieldRule>> = Object.freeze({
  prometheus: ['kept', '/metrics, for keys with the scope metrics:read'],
  otel: ['emulated', 'policies: { otel } sends spans to OTEL_EXPORTER_OTLP_ENDPOINT'],
  langfuse: ['emulated', 'the policy otel sends spans to Langfuse: docs/operate.md'],
  langfuse_otel: ['emulated', 'the policy otel sends spans to Langfuse: docs/operate.md'],
  arize_phoenix: ['emulated', 'the policy otel sends spans to Phoenix: docs/operate.md'],
  datadog: ['emulated', 'the policy otel sends spans to Datadog: docs/operate.md'],
});

/** Guardrails by kind: the equivalent policy, and a note. */
export const GUARDRAILS: Readonly<Record<string, readonly [policy: string, note: string]>> = Object.freeze({
  presidio: ['pii', 'the guardrail pii masks by forms and check digits, without a service'],
  'hide-secrets': ['pii', 'the guardrail pii masks secrets of known forms'],
});

// Sections that the import reads and reports itself.

export const SECTIONS_READ = Object.freeze([
  'model_list',
  'litellm_settings',
  'router_settings',
  'general_settings',
  'environment_variables',
  'guardrails',
]);
export const SETTINGS_READ = Object.freeze([
  'callbacks',
  'success_callback',
  'failure_callback',
  'service_callbacks',
  'cache',
  'cache_params',
  'fallbacks',
  'default_fallbacks',
  'context_window_fallbacks',
  'content_policy_fallbacks',
  'request_timeout',
]);
export const ROUTER_READ = Object.freeze([
  'routing_strategy',
  'fallbacks',
  'default_fallbacks',
  'context_window_fallbacks',
  'content_policy_fallbacks',
  'model_group_alias',
  'timeout',
  'stream_timeout',
]);

export const PARAMS_READ = Object.freeze([
  'model',
  'api_key',
  'api_base',
  'base_url',
  'api_version',
  'organization',
  'extra_headers',
  'headers',
  'timeout',
  'stream_timeout',
  'rpm',
  'tpm',
  'weight',
  'order',
  'aws_region_name',
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_session_token',
  'aws_profile_name',
  'aws_bedrock_runtime_endpoint',
  'tenant_id',
  'client_id',
  'client_secret',
  'vertex_credentials',
  'vertex_project',
  'vertex_location',
  'input_cost_per_token',
  'output_cost_per_token',
  'temperature',
  'top_p',
  'reasoning_effort',
]);
