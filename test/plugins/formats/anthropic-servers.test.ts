import { expect } from 'chai';
import { writeJson } from '../../../contract/index.ts';
import { serverToolBlocks } from '../../../plugins/formats/anthropic/servers.ts';

describe('calls of servers’ tools in Messages', () => {
  it('keep the text of their numbers (G9)', () => {
    const call = { id: 'a', server: 's', name: 'n', arguments: '{"id":12345678901234567890,"rate":1.10}', output: '' };
    expect(writeJson(serverToolBlocks({ mcp_calls: [call] }))).to.include(call.arguments);
  });
});
