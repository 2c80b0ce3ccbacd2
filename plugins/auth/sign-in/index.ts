import {
  definePlugin,
  GatewayError,
  type PluginApi,
  type Principal,
  type UserRecord,
} from '../../../contract/index.ts';
import { USERS } from '../../policies/kit/index.ts';
import { createCookies } from '../kit/cookies.ts';
import { createDocuments, createStoredDocuments, createUserDocuments, withStore } from '../kit/documents.ts';
import { INTRODUCTIONS, type Introduction } from '../kit/introductions.ts';
import { peopleOf } from '../kit/people.ts';
import { createSecrets, findSecret, type StoredSecret } from '../kit/secrets.ts';
import { CONFIG_SCHEMA, findProblems, readOptions, type SignInOptions } from './config-schema.ts';
import { deviceRoutes } from './device-page.ts';
import { createGrants, type Decision, GRANT_MS, type Grant, type PendingGrant } from './grants.ts';
import { registerSignIns } from './manage.ts';
import { settingsRoute } from './managed-settings.ts';
import { createRates, oauthRoutes } from './oauth-routes.ts';
import {
  ACCESS_PREFIX,
  type AccessToken,
  createSignIns,
  type RefreshToken,
  type SignIn,
  type SignIns,
} from './sign-ins.ts';

/**
 * People sign in with their coding agents through their company's account, without an API key. Uses the device flow
 * (RFC 8628) and Anthropic's gateway protocol, on the OpenID provider of `auth.openid`. Verified parts of the protocol:
 * docs/decisions/sign-in-of-agents.md.
 */
export default definePlugin({
  name: 'sign-in',
  kind: 'auth',
  apiVersion: 1,
  permissions: ['records', 'operators'],
  requires: ['openid'],
  credentials: ['key'],
  isCredential: (text) => text.startsWith(ACCESS_PREFIX),
  configSchema: CONFIG_SCHEMA,
  commands: [{ name: 'sign-ins', summary: 'List and revoke sign-ins of programs' }],
  check: (config) => findProblems(config),

  setup(api, config) {
    const options = readOptions(config, api.settings.basePath);
    const { counters, sets, stored } = api.stores;
    const documents = createStoredDocuments<SignIn>(stored, 'sign-ins');
    const ofUsers = createUserDocuments(sets, 'sign-ins');
    api.stores.personalData(ofUsers.personal('sign-ins', documents));
    const signIns = createSignIns(
      {
        accesses: createStoredDocuments<AccessToken>(stored, 'access-tokens'),
        refreshes: createStoredDocuments<RefreshToken>(stored, 'refresh-tokens'),
        signIns: documents,
        ofUsers,
        counters,
        findPerson: peopleOf(api),
      },
      options,
    );
    const secrets = <T>(name: string) =>
      createSecrets<T>(name, GRANT_MS, createDocuments(api.keyv<StoredSecret<T>>(name)), counters);
    const grants = createGrants({
      devices: secrets<Grant>('devices'),
      codes: secrets<PendingGrant>('codes'),
      decisions: createDocuments(api.keyv<Decision>('decisions')),
      counters,
    });
    const {
      operators: { audit },
      log,
    } = api;
    const parts = { options, grants, signIns, audit, log, count: createRates(), refuse: createRefuse(api, options) };
    for (const route of oauthRoutes(parts)) api.route(route);
    const introductions = api.stores.shared<StoredSecret<Introduction>>(INTRODUCTIONS);
    const cookies = createCookies(options.isSecure, options.basePath);
    const people = { find: (id: string, now: number) => findSecret(introductions, id, now) };
    for (const route of deviceRoutes({ ...parts, cookies, introductions: people })) api.route(route);
    api.route(settingsRoute(config.managedSettings, signIns));
    registerSignIns(api, signIns);
    authenticate(api, options, signIns);
  },
});

/** Throws for people whom the configuration does not admit. */
function refuseOthers(words: readonly string[], { allow }: SignInOptions): void {
  if (allow && !allow.some((word) => words.includes(word)))
    throw new GatewayError(
      'permission_denied',
      'Your account is not in a group that may sign in with programs. Ask your administrator, then start again.',
    );
}

/** Throws also for people who are blocked here. */
function createRefuse(
  api: Pick<PluginApi, 'books'>,
  options: SignInOptions,
): (person: { readonly userId: string; readonly words: readonly string[] }) => Promise<void> {
  const users = api.books.records<UserRecord>(USERS);
  return async ({ userId, words }) => {
    refuseOthers(words, options);
    const { value } = await withStore(() => users.find(userId));
    if (value?.blockedAt !== undefined)
      throw new GatewayError(
        'permission_denied',
        'An operator of this gateway blocked your account. Ask them to unblock it.',
      );
  };
}

/** Accepts access tokens in place of keys. They belong to a person: spending is the person's own, without any key. */
function authenticate(api: PluginApi, options: SignInOptions, signIns: SignIns): void {
  const order = Object.entries(options.plans);
  api.hook('authenticate', async ({ credential, now, beforeLookup }): Promise<Principal | undefined> => {
    if (!credential.startsWith(ACCESS_PREFIX)) return undefined;
    const signIn = await signIns.find(credential, now, beforeLookup);
    if (!signIn)
      throw new GatewayError(
        'invalid_token',
        'This sign-in has ended or its token has expired. Sign in again: "/login" in Claude Code, or "tollgate users login".',
        // Claude Code then asks its user at once, in place of retrying for minutes.
        { headers: { 'x-should-retry': 'false' } },
      );
    const { userId, words } = signIn;
    refuseOthers(words, options);
    const plan = order.find(([word]) => words.includes(word))?.[1];
    return Object.freeze({ credential: 'key', userId, account: userId, ...(plan !== undefined && { plan }) });
  });
}
