import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';

/** Plugins of the docs that need no options, as files that import this checkout. */
const INDEX = JSON.stringify(path.join(PACKAGE_ROOT, 'contract/index.ts'));
const GUARDRAILS = JSON.stringify(path.join(PACKAGE_ROOT, 'plugins/guardrails/kit/index.ts'));
const WS = JSON.stringify(fileURLToPath(import.meta.resolve('ws')));
const shown = readBlocks()
  .filter(
    ({ language, text }) =>
      language === 'ts' && /kind: 'policy'/.test(text) && /export default/.test(text) && !text.includes('required: ['),
  )
  .map(({ page, line, text }) => ({
    page,
    line,
    file: `example-${line}.ts`,
    text: text.replaceAll("'tollgate'", INDEX).replaceAll("'tollgate/guardrails'", GUARDRAILS).replaceAll("'ws'", WS),
  }));

const chat = (content: string, stream: boolean) => ({
  model: 'echo/echo',
  stream,
  messages: [{ role: 'user', content }],
});

describe('plugins in the docs', () => {
  let gateway: TestGateway;

  for (const { page, line, file, text } of shown) {
    describe(`${page}:${line}`, () => {
      before(async () => {
        gateway = await startGateway({ plugins: [`./${file}`] }, { files: { [file]: text } });
      });
      after(() => gateway.stop());

      for (const stream of [false, true])
        it(`loads, and lets a call pass ${stream ? 'with' : 'without'} a stream`, async () => {
          const response = await gateway.post('/v1/chat/completions', chat('Hello there', stream));
          expect(response.status).to.equal(200);
          expect(await response.text()).to.include('there');
        });

      if (page !== 'README.md') return;
      for (const stream of [false, true])
        it(`refuses the documented calls ${stream ? 'with' : 'without'} a stream`, async () => {
          const response = await gateway.post('/v1/chat/completions', chat('Tell me of Project Orion', stream));
          expect(response.status).to.equal(400);
          const { error } = (await response.json()) as { readonly error: object };
          expect(error).to.include({ code: 'content_filtered', param: 'messages[0].content' });
        });
    });
  }

  it('exist', () => expect(shown).to.have.length.greaterThan(4));
});
