import { drop, openaiCompatible, rename } from 'tollgate/openai-compatible';

/** A vendor that speaks OpenAI's chat completions is data: only what differs from OpenAI. Link the vendor's reference here. */
export default openaiCompatible({
  name: 'my-plugin',
  baseUrl: 'https://api.vendor.example/v1',
  apiKeyEnv: 'MY_PLUGIN_API_KEY',
  // Prices are US dollars for a million tokens.
  models: [{ id: 'my-plugin-1', contextWindow: 128_000, maxOutput: 8192, price: { input: 0.5, output: 2 } }],
  // What the vendor calls by another name, and what it does not have.
  fields: { max_completion_tokens: rename('max_tokens'), seed: drop(), logprobs: drop(), top_logprobs: drop() },
  // What its responses never show, and how that is known; all else the fixtures have to show.
  lacks: { 'log probabilities': 'its reference has none' },
  listsModels: false,
});
