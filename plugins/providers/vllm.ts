import { CONTINUE_OPTION, continuesAs } from '../formats/openai-chat/continue.ts';
import { MEDIA_PARTS } from '../formats/openai-chat/messages.ts';
import { templateOrder } from './kit/index.ts';
import { drop, OPENAI_ONLY, openaiCompatible } from './openai-compatible.ts';

/** Self-hosted server. Source: vllm-project/vllm `vllm/entrypoints/openai/chat_completion/protocol.py` (2026-11). */
export default openaiCompatible({
  name: 'vllm',
  baseUrl: 'http://127.0.0.1:8000/v1',
  apiKeyEnv: 'VLLM_API_KEY',
  keyRequired: false,
  anyModel: true,
  unlimited: true,
  thinkTags: true,
  media: MEDIA_PARTS,
  fields: { ...OPENAI_ONLY, user: drop('ignored by the server') },
  extras: [
    ...[
      'allowed_token_ids',
      'bad_words',
      'cache_salt',
      'chat_template_kwargs',
      'documents',
      'ignore_eos',
      'include_reasoning',
    ],
    'messages.content.uuid',
    'stream_options.continuous_usage_stats',
    ...['length_penalty', 'min_p', 'min_tokens', 'mm_processor_kwargs', 'repetition_penalty', 'skip_special_tokens'],
    ...['stop_token_ids', 'structured_outputs', 'thinking_token_budget', 'top_k', 'truncate_prompt_tokens'],
  ],
  roles: { developer: 'system' },
  turnOrder: templateOrder,
  replay: 'reasoning',
  remoteMedia: 'refuse',
  embeddings: { fields: { user: drop() } },
  // https://docs.vllm.ai/en/stable/serving/online_serving.html
  operations: ['rerank', 'transcription'],
  rerankTexts: true,
  options: CONTINUE_OPTION,
  configure: ({ continues }) => continuesAs(continues),
  lacks: { 'reasoning tokens': 'its usage does not count them separately' },
});
