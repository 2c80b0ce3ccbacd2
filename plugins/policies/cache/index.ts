import { definePlugin, parseDuration, parseSize } from '../../../core/index.ts';
import { cachePolicy } from './cache-policy.ts';
import { createResponseCache } from './response-cache.ts';

/** Gives the response to a chat again, for nothing, when the very same request comes again. Off unless the section is there. */
export default definePlugin({
  name: 'cache',
  kind: 'policy',
  apiVersion: 1,
  section: 'responseCache',
  configSchema: {
    type: ['object', 'null'],
    additionalProperties: false,
    description:
      'Keeps responses of chats in memory and gives them again, for nothing, to the same request of the same user; off unless it is there.',
    properties: {
      ttl: { type: 'string', format: 'duration', default: '1h', description: 'How long a response is kept.' },
      maxSize: {
        type: ['string', 'integer'],
        format: 'size',
        default: '64mb',
        description: 'What one process keeps in all; the responses that were used least lately go first.',
      },
      maxResponse: {
        type: ['string', 'integer'],
        format: 'size',
        default: '256kb',
        description: 'The largest response that is kept.',
      },
      sharedBy: {
        enum: ['user', 'account', 'everyone'],
        default: 'user',
        description:
          'Who gets it: the user whose request it was, all users of the account, or everyone who may use the model.',
      },
      requests: {
        enum: ['all', 'deterministic'],
        default: 'all',
        description: '`deterministic` keeps only responses to requests with `temperature: 0` or a `seed`.',
      },
    },
  },
  setup(api, config) {
    if (!config) return;
    const { ttl = '1h', maxSize = '64mb', maxResponse = '256kb', sharedBy = 'user', requests = 'all' } = config;
    const bounds = {
      ttlMs: parseDuration(ttl),
      maxBytes: parseSize(maxSize),
      maxResponseBytes: parseSize(maxResponse),
    };
    // Other bounds are another cache; else what is kept outlives a reload.
    const cache = api.keep(`responses ${JSON.stringify(bounds)}`, () => createResponseCache(bounds));
    const policy = cachePolicy(cache, { sharedBy, isDeterministicOnly: requests === 'deterministic' });
    api.hook('answer', { operations: ['chat'], handler: policy.answer });
    // Before others change it: what is given again passes them again.
    api.hook('receive', { operations: ['chat'], order: 'post', handler: policy.receive });
    api.hook('stream', { operations: ['chat'], order: 'post', handler: policy.stream });
    api.hook('finish', { operations: ['chat'], handler: policy.finish });
  },
});
