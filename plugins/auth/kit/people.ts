import type { GatewayView, PersonalData, PluginApi } from '../../../contract/index.ts';
import { createStoredDocuments } from './documents.ts';
import { hashId } from './random-id.ts';

/** Person as the identity provider described them at their latest sign-in, of any kind. */
export interface Person {
  /** All words of the claims in which `openid` looks for roles. */
  readonly words: readonly string[];
}

/** Provider and client of a person's sign-in. */
export interface PersonSource {
  readonly issuer: string;
  readonly clientId: string;
}

/**
 * Finds a person of the configured provider by user id. Sessions and sign-ins hold the id alone and ask for the words
 * at each use, so that a role that the person lost is lost everywhere.
 */
export type FindPerson = (userId: string) => Promise<Person | undefined>;

export interface People {
  readonly find: FindPerson;
  /** Replaces what is known of a person. */
  record(userId: string, words: readonly string[]): Promise<void>;
}

/** The longest sign-in ends before. */
const KEPT_MS = 91 * 86_400_000;

/** Owners of people by the gateway that instances share. */
const OWNERS = new WeakMap<GatewayView, FindPerson>();

interface PeopleApi {
  readonly operators: Pick<PluginApi['operators'], 'gateway'>;
}

/** Keeps people in the store, and offers them to other instances of the gateway. */
export function createPeople(
  api: PeopleApi & { readonly stores: Pick<PluginApi['stores'], 'stored' | 'personalData'> },
  { issuer, clientId }: PersonSource,
): People {
  const documents = createStoredDocuments<Person & PersonSource>(api.stores.stored, 'people');
  const find: FindPerson = async (userId) => {
    const person = await documents.get(hashId(userId));
    return person?.issuer === issuer && person.clientId === clientId ? person : undefined;
  };
  api.stores.personalData(personal(documents));
  OWNERS.set(api.operators.gateway, find);
  return {
    find,
    record: (userId, words) => documents.set(userId, hashId(userId), { words, issuer, clientId }, KEPT_MS),
  };
}

function personal(documents: Pick<ReturnType<typeof createStoredDocuments>, 'get' | 'delete'>): PersonalData {
  const count: PersonalData['count'] = async ({ userId }) =>
    (await documents.get(hashId(userId))) === undefined ? 0 : 1;
  return {
    name: 'identities',
    count,
    async erase(user) {
      const found = await count(user);
      await documents.delete(hashId(user.userId));
      return found;
    },
  };
}

/** Returns the search for people of the instance that owns them. */
export function peopleOf({ operators: { gateway } }: PeopleApi): FindPerson {
  return async (userId) => OWNERS.get(gateway)?.(userId);
}
