import { expect } from 'chai';
import { runPluginCommand } from '../../cli/plugin-commands.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';
import { CHAT, type Json, MESSAGES, RESPONSES } from '../support/vendors/bill-wires.ts';
import { ADMIN_KEY, type BillingVendor, type Served, startBillingVendor } from '../support/vendors/billing-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';
import { anthropic, openai } from './vendor-bills.ts';

interface Reconciled {
  readonly data: readonly { readonly model: string; readonly explanations: readonly Json[] }[];
  readonly totals: Json;
  readonly is_within_tolerance: boolean;
}

describe('the bill of a vendor for calls through a gateway', () => {
  let upstream: ScriptedUpstream;
  let vendor: BillingVendor;
  let gateway: TestGateway;

  before(async () => {
    [upstream, vendor] = await Promise.all([startScriptedUpstream(), startBillingVendor()]);
    const at = { baseUrl: upstream.url, apiKey: 'k' };
    const access = { baseUrl: vendor.url, adminKey: ADMIN_KEY };
    gateway = await startGateway({
      store: 'sqlite:./data',
      providers: { openai: at, anthropic: at },
      policies: { reconcile: { openai: access, anthropic: access } },
    });
  });
  after(async () => {
    await gateway?.stop();
    await Promise.all([upstream?.close(), vendor?.close()]);
  });

  /** Makes a call; returns the day of its record. */
  const call = async (wire: typeof CHAT, model: string, said: Json): Promise<string> => {
    upstream.script(respondWith(200, wire.whole(said)));
    const response = await gateway.post(wire.path, { ...wire.request, model });
    expect(response.status, await response.text()).to.equal(200);
    return eventually(async () => {
      const list = await gateway.get(`/api/core/calls?request=${response.headers.get('x-request-id')}`);
      const { data } = (await list.json()) as { readonly data: readonly Json[] };
      expect(data).to.have.length(1);
      return String(data[0]?.['counted_at']).slice(0, 10);
    });
  };

  const reconcile = (provider: string, days: readonly string[]): Promise<Reconciled> => {
    const last = new Date(Date.parse([...days].sort().at(-1) ?? '') + 86_400_000).toISOString().slice(0, 10);
    const [first = ''] = [...days].sort();
    const range = ['--from', first, '--to', last, '--tolerance', '0'];
    return gateway.command<Reconciled>('reconcile', '--provider', provider, ...range);
  };

  it('agrees with the ledger unit by unit, and an unreported tier explains the difference (OpenAI)', async () => {
    const cached = { prompt_tokens_details: { cached_tokens: 400 } };
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } };
    const days = [
      await call(CHAT, 'openai/gpt-5.5', { usage: openai(1000, 100, cached) }),
      await call(CHAT, 'openai/gpt-5.5', { service_tier: 'priority', usage: openai(1000, 100) }),
      await call(RESPONSES, 'openai/gpt-6.1-sol', { usage: anthropic(1000, 100), output: [search] }),
    ];
    const [first = '', second = '', third = ''] = days;
    const model = 'gpt-5.5-2026-04-23';
    const bill: readonly Served[] = [
      {
        ...{ day: first, model, calls: 1, units: { input_tokens: 600, cached_tokens: 400, output_tokens: 100 } },
        usd: { input_tokens: 0.003, cached_tokens: 0.0002, output_tokens: 0.003 },
      },
      {
        ...{ day: second, model, tier: 'priority', calls: 1, units: { input_tokens: 1000, output_tokens: 100 } },
        usd: { input_tokens: 0.0125, output_tokens: 0.0075 },
      },
      {
        ...{ day: third, model: 'gpt-6.1-sol', calls: 1 },
        units: { input_tokens: 1000, output_tokens: 100, web_search_requests: 1 },
        usd: { input_tokens: 0.002, output_tokens: 0.001, web_search_requests: 0.01 },
      },
    ];
    vendor.serve(...bill);
    const agreed = await reconcile('openai', days);
    expect(agreed.data, JSON.stringify(agreed.data)).to.deep.equal([]);
    expect(agreed.is_within_tolerance).to.equal(true);
    expect(agreed.totals).to.include({ ledger_usd: '0.0392', vendor_usd: '0.0392' });

    const dearer = { tier: 'priority', usd: { input_tokens: 0.004, output_tokens: 0.002, web_search_requests: 0.01 } };
    vendor.serve(...bill.slice(0, 2), { ...(bill[2] as Served), ...dearer });
    const { data, is_within_tolerance: isWithin } = await reconcile('openai', days);
    expect(isWithin).to.equal(false);
    expect(data.map(({ explanations }) => explanations.map(({ cause, usd }) => [cause, usd]))).to.deep.equal([
      [['tier', '0.003']],
    ]);
  });

  it('agrees with the ledger unit by unit, caches of both lifetimes and searches included (Anthropic)', async () => {
    const usage = anthropic(100, 50, {
      ...{ cache_read_input_tokens: 30, cache_creation_input_tokens: 60 },
      cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 20 },
      server_tool_use: { web_search_requests: 1 },
    });
    const day = await call(MESSAGES, 'anthropic/claude-opus-5', { usage });
    vendor.serve({
      ...{ day, model: 'claude-opus-5', calls: 1 },
      units: {
        ...{ input_tokens: 100, cached_tokens: 30, cache_write_tokens: 40, cache_write_1h_tokens: 20 },
        ...{ output_tokens: 50, web_search_requests: 1 },
      },
      usd: {
        ...{ input_tokens: 0.0005, cached_tokens: 0.000_015, cache_write_tokens: 0.000_25 },
        ...{ cache_write_1h_tokens: 0.0002, output_tokens: 0.001_25, web_search_requests: 0.01 },
      },
    });
    const agreed = await reconcile('anthropic', [day]);
    expect(agreed.data, JSON.stringify(agreed.data)).to.deep.equal([]);
    expect(agreed.totals).to.include({ ledger_usd: '0.012215', vendor_usd: '0.012215' });
  });

  it('makes the command exit with 4 if it does not agree, and print its findings', async () => {
    const day = await call(MESSAGES, 'anthropic/claude-haiku-4-5', { usage: anthropic(100, 50) });
    const end = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
    vendor.serve();
    const { terminal, out, exitCode } = captureTerminal();
    const words = ['--provider', 'anthropic', '--from', day, '--to', end];
    const context = {
      terminal,
      globals: { config: `${gateway.folder}/tollgate.config.json` },
      args: words,
      options: {},
    };
    await runPluginCommand('reconcile', words, context, { cwd: gateway.folder, env: {} });
    expect(exitCode()).to.equal(4);
    expect(out()).to.include('the vendor lacks').and.include('Not within the tolerance');
  });
});
