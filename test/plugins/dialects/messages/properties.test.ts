import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { GatewayError } from '../../../../contract/index.ts';
import { readMessages } from '../../../../plugins/formats/anthropic/read-request.ts';
import { MESSAGES_REQUEST } from '../../../../plugins/formats/anthropic/types.ts';
import { writeStream } from '../../../../plugins/formats/anthropic/write-stream.ts';
import { readMessagesStream } from '../../../support/formats/messages-grammar.ts';
import { chunkSequences, conversations } from './messages-arbitraries.ts';
import { messagesContext, messagesInput } from './messages-dialect.ts';
import { writeMessagesBody } from './write-messages-body.ts';

describe('any conversation', () => {
  const validate = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true }).compile(
    MESSAGES_REQUEST,
  );

  it('is the same after it was written in the Messages format and read', () => {
    fc.assert(
      fc.property(conversations, (conversation) => {
        const body = writeMessagesBody(conversation);
        expect(validate(body), JSON.stringify(validate.errors)).to.equal(true);
        expect(readMessages(messagesInput(body)).request.messages).to.deep.equal(conversation);
      }),
    );
  });
});

describe('any sequence of chunks', () => {
  it('is a grammatical stream of the Messages format, ended or failed', () => {
    fc.assert(
      fc.property(chunkSequences, fc.boolean(), (chunks, fails) => {
        const writer = writeStream(messagesContext());
        const text = chunks.map((chunk) => writer.push(chunk)).join('');
        const error = new GatewayError('provider_unavailable', 'Gone.');
        if (fails && text === '') return;
        readMessagesStream(text + (fails ? writer.fail(error, 'req_1') : writer.end()));
      }),
    );
  });

  it('keeps every character of its texts, and every call', () => {
    fc.assert(
      fc.property(chunkSequences, (chunks) => {
        const writer = writeStream(messagesContext());
        const { content } = readMessagesStream(chunks.map((chunk) => writer.push(chunk)).join('') + writer.end());
        const deltas = chunks.flatMap(({ choices }) =>
          choices.flatMap(({ index, delta }) => (index === 0 ? [delta] : [])),
        );
        const said = deltas.map(({ content: text, refusal }) => (text ?? '') + (refusal ?? '')).join('');
        const written = content.map(({ type, text }) => (type === 'text' ? String(text) : '')).join('');
        expect([...written].sort()).to.deep.equal([...said].sort());
        const called = new Set(deltas.flatMap(({ tool_calls: calls = [] }) => calls.map(({ index }) => index)));
        expect(content.filter(({ type }) => type === 'tool_use')).to.have.length(called.size);
      }),
    );
  });
});
