/** Remedies by error code, shown next to the vendor's message. */
const STEPS: Readonly<Record<string, string>> = Object.freeze({
  provider_unavailable:
    'Check the target: does the vendor respond? A second target for the alias takes over when this one fails.',
  provider_overloaded: 'The vendor is overloaded. Add a second target to the alias, or retry later.',
  provider_timeout: 'The vendor was too slow. Raise the provider’s timeouts, or add a second target.',
  provider_auth_failed: 'The vendor rejected your key: set a valid one in the configuration and reload.',
  provider_quota_exhausted: 'Your account at the vendor is out of credit: top it up there.',
  provider_invalid_response: 'The vendor’s response could not be read. If it stays so, report it with the request id.',
  provider_not_configured: 'The provider has no key: set its variable in the environment and reload.',
  upstream_rate_limited: 'The vendor’s own limit is reached: request a higher one, or spread the load over targets.',
  insufficient_balance: 'The budget or balance in the message is spent: raise it, or wait for its next period.',
  rate_limited: 'A limit of a key, user or plan is reached: raise it if needed.',
  model_not_allowed: 'The key may not use this model, or the model has no price: see the message.',
  permission_denied:
    'The key or its user is blocked or lacks the permission: see API keys. With a provider’s name: your account there lacks it.',
  unsupported_model: 'No provider has a model of this name: see Models for those that can be called.',
  unsupported_provider: 'The provider is not configured: see Models.',
  context_length_exceeded: 'The request is longer than the context of the model. Shorten it, or use another model.',
  content_filtered: 'The vendor’s policy rejected the content. The caller has to change it.',
  invalid_request: 'The request is invalid: the message names the field.',
  store_unavailable: 'The store does not respond: check it and the gateway’s log.',
  overloaded: 'The gateway is overloaded: add a process, or find the cause of the load.',
  internal_error: 'A bug in the gateway or a plugin: the log has it under the request id.',
});

export function nextStep(code: string | null): string | undefined {
  return code === null ? undefined : STEPS[code];
}
