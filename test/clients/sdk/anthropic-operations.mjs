// Operations of @anthropic-ai/sdk other than messages.
import Anthropic from '@anthropic-ai/sdk';
import * as is from './behaviours.mjs';

const { batches } = new Anthropic({ baseURL: is.base, apiKey: is.key, maxRetries: 0 }).messages;
const params = { model: 'anthropic/claude-opus-5-5', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] };

await is.report({
  async batches() {
    const { id } = await batches.create({ requests: ['a', 'b'].map((custom_id) => ({ custom_id, params })) });
    const { processing_status: status, request_counts: counts } = await batches.retrieve(id);
    is.equal([status, counts.succeeded], ['ended', 2], 'the batch');
    const texts = [];
    for await (const { custom_id: key, result } of await batches.results(id))
      texts.push([key, result.message.content[0].text]);
    is.equal(
      texts,
      ['a', 'b'].map((key) => [key, is.HELLO]),
      'the results',
    );
    const ids = [];
    for await (const batch of batches.list()) ids.push(batch.id);
    is.equal(ids, [id], 'the list');
  },
});
