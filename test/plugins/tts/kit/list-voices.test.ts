import { expect } from 'chai';
import { isGatewayError, type PluginApi } from '../../../../contract/index.ts';
import { createHttpClient } from '../../../../egress/http-client.ts';
import { createVoiceLister, readVoice } from '../../../../plugins/tts/kit/index.ts';
import { speechVendor } from '../../../support/speech/speech-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../../support/vendors/scripted-upstream.ts';

describe('the list of a vendor’s voices', () => {
  let upstream: ScriptedUpstream;
  before(async () => {
    upstream = await startScriptedUpstream();
  });
  after(() => upstream.close());

  const listOf = (changes: object = {}) => {
    const http: PluginApi['http'] = () => createHttpClient(new Set([new URL(upstream.url).host]), '0');
    const credential = { header: 'x-key', prefix: 'Token ', value: 'sk-operator', required: true };
    const endpoint = speechVendor({
      baseUrl: `${upstream.url}/base`,
      credential,
      headers: { 'x-version': '7' },
      ...changes,
    });
    const read = (body: unknown) => (body as { id: string }[]).flatMap(({ id }) => readVoice(id, undefined, undefined));
    return createVoiceLister({ http, instance: 'one' }, endpoint, { path: '/voices?limit=100', read });
  };

  it('is read from its own endpoint, with the operator’s key', async () => {
    upstream.script(respondWith(200, [{ id: 'ann' }]));
    const before = upstream.requests.length;
    expect(await listOf()()).to.deep.equal([{ id: 'ann', name: 'ann' }]);
    const { method, path, headers } = await upstream.request(before);
    expect([method, path]).to.deep.equal(['GET', '/base/voices?limit=100']);
    expect(headers).to.include({ 'x-key': 'Token sk-operator', 'x-version': '7' });
  });

  const failures: readonly [string, Buffer, string][] = [
    ['an error', respondWith(429, { error: 'x' }), 'upstream_rate_limited'],
    ['nonsense', respondWith(200, '<html>'), 'provider_invalid_response'],
  ];
  for (const [title, bytes, code] of failures) {
    it(`passes ${title} on, with a single request`, async () => {
      upstream.script(bytes);
      const before = upstream.requests.length;
      const error = await listOf()().catch((thrown: unknown) => thrown);
      expect(isGatewayError(error) && error.code).to.equal(code);
      expect(upstream.requests.length).to.equal(before + 1);
    });
  }

  it('is an error of the provider if it is unreachable, and contains neither key nor URL', async () => {
    const error = await listOf({ baseUrl: upstream.url.replace(/:\d+$/, ':1') })().catch((thrown: unknown) => thrown);
    expect(isGatewayError(error) && error.code).to.equal('provider_unavailable');
    expect((error as Error).message).to.equal(
      'The provider one could not be reached or returned an error. Try again later.',
    );
  });
});
