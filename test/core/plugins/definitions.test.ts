import { expect } from 'chai';
import { findMistakes } from '../../../config/check-definition.ts';
import { DEFINITIONS } from '../../../contract/definitions.ts';
import { removeFolders } from '../../support/folders.ts';
import { startGateway } from '../../support/gateways/gateway.ts';

const route = { method: 'GET', path: '/x', summary: 'X', auth: ['key'], responses: { 200: 'OK.' }, handler() {} };
const mistakesOf = (value: unknown, kind: keyof typeof DEFINITIONS): readonly string[] =>
  findMistakes(value, DEFINITIONS[kind]).map(({ message, hint }) => `${message}. ${hint}`);

/** Plugin of a policy that registers one route. */
const plugin = (version: number, members: string): string => `export default {
  name: 'probe', kind: 'policy', apiVersion: ${version}, ${version > 1 ? 'newMember: true,' : ''} setup(api) {
    api.route({ method: 'GET', path: '/probe', summary: 'x', auth: ['key'], ${members}, responses: { 200: 'OK.' },
      handler(ctx) { ctx.body = 'open'; } });
  } };`;

describe('G60: plugins’ registrations are checked against closed tables', () => {
  afterEach(removeFolders);

  it('accepts every member of the contract', () => {
    expect(mistakesOf({ ...route, role: 'admin', scope: 'usage:read' }, 'route')).to.deep.equal([]);
    expect(mistakesOf({ ...route, responses: { 200: { description: 'OK.', schema: {} } } }, 'route')).to.deep.equal([]);
    expect(mistakesOf({ name: 'a_usd', help: 'A', read: () => 1 }, 'gauge')).to.deep.equal([]);
  });

  const wrong: readonly (readonly [kind: keyof typeof DEFINITIONS, value: object, says: string])[] = [
    ['route', { ...route, role: 'owner' }, 'has the invalid value "owner" for "role". Allowed is: "admin".'],
    ['route', { ...route, roles: ['admin'] }, 'has the unknown member "roles". Did you mean "role"?'],
    ['route', { ...route, auth: ['keys'] }, 'has the invalid value "keys" for "auth[0]". Did you mean "key"?'],
    ['route', { ...route, isProbe: 'yes' }, 'has the invalid value "yes" for "isProbe". It must be a boolean.'],
    ['route', { ...route, form: { maxFileByte: 1 } }, 'has the unknown member "maxFileByte" in "form".'],
    ['command', { name: 'a', summary: 'A', subcommand: [] }, 'has the unknown member "subcommand". Did you mean'],
    [
      'command',
      { name: 'a', summary: 'A', options: [{ flag: '--a' }] },
      'has the unknown member "flag" in "options[0]"',
    ],
    ['agent', { name: 'a', when: 'b', maxToken: 1 }, 'has the unknown member "maxToken". Did you mean "maxTokens"?'],
    [
      'provider',
      { remoteMedia: 'deny' },
      'has the invalid value "deny" for "remoteMedia". Allowed are: "allow", "refuse".',
    ],
    ['provider', { models: [{ id: 'a', price: { inptu: 1 } }] }, 'has the unknown member "inptu" in "models[0].price"'],
    ['dialect', { routes: [{ action: 'counts' }] }, 'has the invalid value "counts" for "routes[0].action"'],
    ['upgrade', { keyProtocols: 'x' }, 'has the unknown member "keyProtocols".'],
    ['announcement', { title: 'a', value: 'b', use: 'keys' }, 'has the invalid value "keys" for "use"'],
    ['personalData', { name: 'a', counts() {} }, 'has the unknown member "counts".'],
  ];
  for (const [kind, value, says] of wrong)
    it(`refuses in the definition "${kind}": ${says}`, () => {
      expect(mistakesOf(value, kind).join('\n')).to.include(says);
    });

  it('warns of an unknown member of a plugin for a newer contract, which starts', async () => {
    const gateway = await startGateway(
      { plugins: ['./a.mjs'] },
      { files: { 'a.mjs': plugin(2, `role: 'admin', colour: 1`) } },
    );
    try {
      const warned = gateway.logs.map(({ msg }) => String(msg)).filter((text) => text.includes('plugin API 2'));
      expect(warned).to.have.length(2);
      expect(warned.join('\n'))
        .to.include('its definition has the unknown member "newMember"')
        .and.include('has the unknown member "colour"');
    } finally {
      await gateway.stop();
    }
  });

  for (const members of [`role: 'owner'`, `roles: 'admin'`, `Role: 'admin'`])
    it(`opens no route of a plugin for a newer contract by ${members}`, async () => {
      const started = startGateway({ plugins: ['./a.mjs'] }, { files: { 'a.mjs': plugin(2, members) } });
      const error = await started.then(
        () => undefined,
        (cause: unknown) => cause as Error,
      );
      expect(error?.message).to.match(
        /^plugin ".\/a.mjs": route "GET \/probe" has the (?:unknown member|invalid value "owner" for) "roles?"/i,
      );
    });
});
