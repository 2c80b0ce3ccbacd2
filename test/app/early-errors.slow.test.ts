import { expect } from 'chai';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { earlyErrors, TRANSPORTS } from './early-errors.ts';

const MIB = 1024 * 1024;

/** Body sizes, and the number of requests per error and transport with each. */
const ROUNDS: readonly (readonly [bytes: number, times: number])[] = [
  [1.5 * MIB, 6],
  [5 * MIB, 4],
  [25 * MIB, 3],
];

describe('an error sent before the body was read', function () {
  this.timeout(900_000);
  let installation: Installation;
  let gateway: GatewayProcess;

  before(async () => {
    installation = await installGateway({
      server: { port: 0, bodyLimit: '1mb' },
      store: 'sqlite:./data',
      providers: { echo: {} },
    });
    gateway = await installation.start();
  });
  after(() => installation.remove());

  let requests = 0;
  for (const [name, send] of Object.entries(TRANSPORTS))
    it(`reaches its sender over ${name}, every time`, async () => {
      const failures: string[] = [];
      for (const [what, error] of Object.entries(earlyErrors(installation.key))) {
        // A form has another content type, and SDKs set their own.
        const status = name === 'a multipart form' && error.status === 413 ? 415 : error.status;
        for (const [bytes, times] of ROUNDS)
          for (let at = 0; at < times; at++) {
            requests += 1;
            await send(gateway.url, error, bytes).then(
              (sent) => sent.status === status || failures.push(`${what}: ${JSON.stringify(sent)}`),
              (problem: Error) =>
                failures.push(`${what} of ${bytes} bytes: ${problem.message} ${String(problem.cause ?? '')}`),
            );
          }
      }
      expect(failures).to.deep.equal([]);
    });

  it('was triggered at least 500 times', () => expect(requests).to.be.greaterThan(500));
});
