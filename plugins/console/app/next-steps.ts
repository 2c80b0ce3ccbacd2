/** Remedies by error code, shown next to the vendor's message. */
const STEPS: Readonly<Record<string, string>> = Object.freeze({
  provider_unavailable:
    'Look at the target: does the vendor answer? A second target for the alias takes over when this one fails.',
  provider_overloaded: 'The vendor sheds load. A second target for the alias, or retries later.',
  provider_timeout: 'The vendor was too slow. Raise the provider’s timeouts, or add a second target.',
  provider_auth_failed: 'The vendor refused your key: put a valid one in the configuration and reload.',
  provider_quota_exhausted: 'Your account at the vendor is out of credit: top it up there.',
  provider_invalid_response: 'The vendor’s response could not be read. If it stays so, report it with the request id.',
  provider_not_configured: 'The provider has no key: set its variable in the environment and reload.',
  upstream_rate_limited: 'The vendor’s own limit is reached: ask it for more, or spread the load over targets.',
  insufficient_balance:
    'The budget or balance that the message names is used up: raise it, or wait for its next period.',
  rate_limited: 'A limit of a key, user or plan is reached: raise it if that was not meant.',
  model_not_allowed: 'The key may not use this model, or the model has no price: see the message.',
  permission_denied:
    'The key or its user is blocked, or may not do this: see API keys. With a provider’s name: your account there may not.',
  unsupported_model: 'No provider has a model of this name: see Models for those that can be called.',
  unsupported_provider: 'The configuration names no such provider: see Models.',
  context_length_exceeded:
    'The conversation is longer than the model takes: the caller shortens it, or uses another model.',
  content_filtered: 'The vendor’s policy refused the content. It is the caller’s to change.',
  invalid_request: 'The caller’s request is wrong: the message names the field.',
  store_unavailable: 'The store does not answer: look at it and at the gateway’s log.',
  overloaded: 'The gateway sheds load: add a process, or look for what keeps it busy.',
  internal_error: 'A bug in the gateway or a plugin: the log has it under the request id.',
});

export function nextStep(code: string | null): string | undefined {
  return code === null ? undefined : STEPS[code];
}
