import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { FAILING_POSTGRES, FAILING_REDIS, type FailingServer } from '../plugins/stores/failing-servers.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import type { TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../support/stores/redis-server.ts';
import { eventually } from '../support/wait.ts';

const BOUND_MS = 60_000;

/** Store that can be read but not written, and the state that the control socket reports. */
interface Unwritable {
  readonly title: string;
  /** Reason why this machine cannot create it; undefined if it can. */
  readonly missing: string | undefined;
  readonly says: RegExp;
  /** Returns the value of `store`. */
  make(): Promise<string>;
  spoil(): Promise<void>;
  mend(): Promise<void>;
  remove(): Promise<void>;
}

function server(kind: string, failing: FailingServer, program: string | undefined): Unwritable {
  let running: TestServer;
  return {
    title: `${kind} is read-only, as a replica is`,
    missing: program === undefined ? `${kind} is not installed` : undefined,
    says: /store/,
    make: async () => {
      running = await failing.start();
      return running.url;
    },
    spoil: () => failing.setReadOnly(running, true),
    mend: () => failing.setReadOnly(running, false),
    remove: async () => running?.close(),
  };
}

/** Redis without eviction and without free memory. */
function fullRedis(): Unwritable {
  let running: TestServer;
  return {
    title: 'the memory of redis is full',
    missing: REDIS_SERVER === undefined ? 'redis is not installed' : undefined,
    says: /redis store is full: it reached its maxmemory/,
    make: async () => {
      running = await startRedisServer();
      return running.url;
    },
    spoil: async () => void (await sendToRedis(running.port, 'CONFIG', 'SET', 'maxmemory', '1')),
    mend: async () => void (await sendToRedis(running.port, 'CONFIG', 'SET', 'maxmemory', '0')),
    remove: async () => running?.close(),
  };
}

/** File system of a few megabytes that is filled up. */
function fullDisk(folder: string): Unwritable {
  const disk = path.join(folder, 'disk');
  const filler = path.join(disk, 'filler');
  const mount = (): boolean => {
    mkdirSync(disk, { recursive: true });
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  };
  const unmount = (): void => void execFileSync('umount', ['-l', disk], { stdio: 'ignore' });
  const isAble = mount();
  if (isAble) unmount();
  return {
    title: "the disk of sqlite's folder is full",
    missing: isAble ? undefined : 'no file system may be mounted here',
    says: /disk is full/,
    make: async () => {
      mount();
      return `sqlite:${path.join(disk, 'data')}`;
    },
    async spoil() {
      const file = openSync(filler, 'w');
      for (const size of [65_536, 4_096, 512])
        try {
          for (;;) writeSync(file, Buffer.alloc(size, 1));
        } catch {
          // Until no block of this size fits.
        }
      closeSync(file);
    },
    mend: async () => rmSync(filler, { force: true }),
    remove: async () => unmount(),
  };
}

const folder = path.join('/tmp', `tollgate-unwritable-${process.pid}`);

describe('a gateway whose store rejects writes (E55)', function () {
  this.timeout(2 * BOUND_MS);
  const damaged = useTempFolder('damaged');
  const stores = [
    fullDisk(folder),
    fullRedis(),
    server('redis', FAILING_REDIS, REDIS_SERVER),
    server('postgres', FAILING_POSTGRES, POSTGRES && INITDB),
  ];
  const chat = async (gateway: TestGateway): Promise<number> => {
    const body = { model: 'echo/echo', messages: [{ role: 'user', content: 'hello' }] };
    const response = await gateway.post('/v1/chat/completions', body);
    await response.text();
    return response.status;
  };
  const ready = async (gateway: TestGateway) => {
    const response = await fetch(`${gateway.url}/readyz`);
    const { checks } = (await response.json()) as { checks: { store: string; store_problem?: string } };
    return { status: response.status, ...checks };
  };
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const { title, missing, says, make, spoil, mend, remove } of stores)
    describe(`because ${title}`, () => {
      let store: string;
      let gateway: TestGateway | undefined;
      before(async function () {
        if (missing !== undefined) this.skip();
        store = await make();
      });
      afterEach(async () => {
        await gateway?.stop();
        gateway = undefined;
      });
      after(async () => {
        if (missing === undefined) await remove();
      });

      it('is alive and not ready, with the reason in /readyz and its log, and is ready again when writes succeed', async () => {
        const started = await startGateway({ store });
        gateway = started;
        expect(await chat(started)).to.equal(200);
        expect(await ready(started)).to.include({ status: 200, store: 'ok' });
        await spoil();
        await eventually(async () => expect(await chat(started)).to.equal(503), BOUND_MS);
        await eventually(async () => {
          const { status, ...checks } = await ready(started);
          expect(status).to.equal(503);
          expect(checks).to.include({ store: 'unavailable' });
          expect(checks.store_problem).to.match(says);
        }, BOUND_MS);
        for (let calls = 0; calls < 20; calls += 1) {
          expect(await chat(started)).to.equal(503);
          expect((await ready(started)).status).to.equal(503);
        }
        expect((await fetch(`${started.url}/livez`)).status).to.equal(200);
        // A server that changes its role may first close its connections, and be unreachable before it rejects writes.
        await eventually(async () => {
          await ready(started);
          expect(started.logs.map(({ msg }) => String(msg)).join('\n')).to.include('the store rejects writes');
        }, BOUND_MS);
        expect((await started.processStates())[0]?.store).to.match(says);
        await mend();
        await eventually(async () => expect(await ready(started)).to.include({ status: 200, store: 'ok' }), BOUND_MS);
        expect(await chat(started)).to.equal(200);
      });

      it('does not start, with the reason', async () => {
        await spoil();
        const refused = await startGateway({ store }).then(
          async (started) => {
            await started.stop();
            return 'it started';
          },
          (error: Error) => error.message,
        );
        await mend();
        expect(refused).to.match(/store/).and.not.equal('it started');
      });
    });

  it('is not ready, and stays so, when pages of its sqlite file are damaged', async () => {
    const gateway = await startGateway({ store: `sqlite:${damaged}` });
    try {
      expect(await chat(gateway)).to.equal(200);
      // Other processes read the file. The cache of this process does not matter then.
      for (const name of readdirSync(damaged)) {
        const file = path.join(damaged, name);
        if (!name.startsWith('tollgate.db')) continue;
        const bytes = Buffer.alloc(Math.max(statSync(file).size - 4_096, 0), 0xa5);
        const handle = openSync(file, 'r+');
        if (bytes.length > 0) writeSync(handle, bytes, 0, bytes.length, 4_096);
        closeSync(handle);
      }
      await eventually(async () => {
        await chat(gateway);
        expect((await ready(gateway)).store_problem).to.match(/damaged|not a database/);
      }, BOUND_MS);
      expect((await fetch(`${gateway.url}/livez`)).status).to.equal(200);
    } finally {
      await gateway.stop();
      writeFileSync(path.join(damaged, 'left'), '');
    }
  });
});
