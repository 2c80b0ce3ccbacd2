import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { toGatewayError } from '../../../contract/index.ts';
import { createMemory } from '../../../core/http/memory.ts';
import { readForm } from '../../../core/http/read-body.ts';

const LIMITS = { maxFileBytes: 10_000_000, maxFiles: 1 };

describe('the parts of a form', () => {
  let server: Server;
  let turns = 0;
  /** True if the body was read before the form. */
  let isRead = false;
  before(() => {
    const memory = createMemory();
    const app = new Koa();
    app.silent = true;
    app.use(async (ctx, next) => {
      try {
        await next();
      } catch (error) {
        ctx.status = toGatewayError(error).status;
      }
      ctx.req.resume();
    });
    app.use(async (ctx) => {
      const counted = {
        ...memory,
        async turn() {
          turns += 1;
        },
      };
      const chunks: Buffer[] = [];
      if (isRead) for await (const chunk of ctx.req) chunks.push(chunk as Buffer);
      const bytes = isRead ? Buffer.concat(chunks) : undefined;
      const form = await readForm(ctx, LIMITS, { bytes, hold: memory.book('account a'), memory: counted });
      ctx.body = { files: form.files.map(({ bytes: size }) => size), fields: form.fields };
      await form.remove();
    });
    server = app.listen(0, '127.0.0.1');
  });
  after(() => server.close());

  const send = async (body: string | Buffer): Promise<Response> => {
    turns = 0;
    return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary="the boundary"' },
      body,
    });
  };
  const file = (text: string): string =>
    `--the boundary\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${text}\r\n`;
  const field = (name: string): string =>
    `--the boundary\r\ncontent-disposition: form-data; name="${name}"\r\n\r\nx\r\n`;
  const END = '--the boundary--\r\n';

  for (const read of [false, true])
    describe(read ? 'that was read before' : 'that arrives', () => {
      beforeEach(() => {
        isRead = read;
      });

      it('wait in the queue of the account for each 2,000 lines that may be boundaries (G62)', async () => {
        const response = await send(file('\r\n-'.repeat(50_000)) + END);
        expect(await response.json()).to.deep.include({ files: [150_000] });
        // A chunk of the network may end before 2,000 lines.
        expect(turns).to.be.within(15, 25);
      });

      it('take no turn without such lines', async () => {
        await send(file('x'.repeat(1_000_000)) + END);
        expect(turns).to.equal(0);
      });

      it('are accepted up to the limit, and refused above it', async () => {
        const fields = (count: number) => Array.from({ length: count }, (_, at) => field(`f${at}`)).join('');
        expect((await send(fields(100) + file('x') + END)).status).to.equal(200);
        expect((await send(fields(101) + file('x') + END)).status).to.equal(413);
        expect((await send(fields(5000) + END)).status).to.equal(413);
      });
    });
});
