import { type CallFilter, type CallRow, GatewayError, type Ledger } from '../../../contract/index.ts';
import { createNameReplacer, isBudgetOf } from '../../policies/kit/index.ts';
import type { Dimensions } from './call-rows.ts';
import { storeKey } from './check.ts';
import { factText } from './facts.ts';

// Erasure of a person from a ledger: an id replaces the name. Records are replaced first, in pages, and the account last. So a
// repetition with the same id finds what is left.

/** Name of a person, and the id that replaces it. */
export interface Renaming {
  readonly id: string;
  /** Store key of the account with this name. */
  readonly account: string;
  readonly name: string;
  /** Name as records have it. */
  readonly shown: string;
  /** Replaces the name inside a text; other words that contain it stay. */
  text(text: string): string;
  call(call: CallRow): CallRow;
  /** Returns the dimensions of the same calls; undefined if they do not name the person. */
  dimensions(dimensions: Dimensions): Dimensions | undefined;
  /** Reports if planned facts or a budget belong to the person. */
  isOf(facts: Pick<CallRow, 'userId'>): boolean;
  isBudget(id: string): boolean;
}

/** Record of a call before and after. */
export interface RenamedCall {
  readonly before: CallRow;
  readonly after: CallRow;
}

/** Parts of a store's ledger for {@link createRename}. */
export interface RenamedLedger {
  readonly calls: Ledger['calls'];
  readonly report: Ledger['report'];
  /** Reports if a reservation of the person is open. */
  isRunning(renaming: Renaming): Promise<boolean>;
  replaceCalls(changes: readonly RenamedCall[], renaming: Renaming): Promise<void>;
  /** Renames sums, the account with its entries, and deletes budgets and ended requests. False if a call has begun meanwhile. */
  renameAccount(renaming: Renaming): Promise<boolean>;
}

/** Later than any record. */
const FOREVER = Number.MAX_SAFE_INTEGER;
/** Records that are read and replaced at once. */
const PAGE = 200;

/** Creates the erasure of names from the parts of a store. */
export function createRename(ledger: RenamedLedger): NonNullable<Ledger['rename']> {
  return async (name, id) => {
    const renaming = createRenaming(name, id);
    if (await ledger.isRunning(renaming)) throw stillRunning();
    const filters: readonly CallFilter[] = [{ userId: name }, { account: name }, ...(await findTags(ledger, name))];
    for (const filter of [...filters, { endUser: name }])
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page = await ledger.calls({ ...filter, limit: PAGE, ...(after !== '' && { after }) });
        const changes = page.calls.map((before) => ({ before, after: renaming.call(before) }));
        if (changes.length > 0) await ledger.replaceCalls(changes, renaming);
        after = page.next;
      }
    if (!(await ledger.renameAccount(renaming))) throw stillRunning();
  };
}

/** Finds tags that contain the name, of anybody's calls. */
async function findTags({ report }: Pick<RenamedLedger, 'report'>, name: string): Promise<readonly CallFilter[]> {
  const groups = await report({ edges: [0, FOREVER], by: ['tags'] });
  const tags = new Set(groups.flatMap(({ tags: packed = '[]' }) => JSON.parse(packed) as readonly string[]));
  return [...tags].filter((tag) => tag.includes(name)).map((tag) => ({ tag }));
}

function stillRunning(): GatewayError {
  return new GatewayError(
    'conflict',
    'A call of this user is running. Block the user, wait until running calls have ended, and erase again: what was erased stays erased.',
  );
}

function createRenaming(name: string, id: string): Renaming {
  const shown = factText(name);
  const text = createNameReplacer(name, id);
  const whole = (value: string): string => (value === shown ? id : text(value));
  const tags = (values: readonly string[]): readonly string[] => values.map(whole).sort();
  return {
    id,
    name,
    account: storeKey(name),
    shown,
    text,
    call({ address, endUser, session, errorMessage, refusedBy, ...call }) {
      const isOther = call.userId !== shown && endUser !== shown;
      return {
        ...call,
        account: call.account === shown ? id : call.account,
        userId: call.userId === shown ? id : call.userId,
        tags: tags(call.tags),
        attempts: call.attempts.map(({ reason, ...attempt }) => ({
          ...attempt,
          ...(reason !== undefined && { reason: text(reason) }),
        })),
        ...(endUser !== undefined && { endUser: endUser === shown ? id : endUser }),
        ...(session !== undefined && { session: whole(session) }),
        ...(errorMessage !== undefined && { errorMessage: text(errorMessage) }),
        ...(refusedBy !== undefined && { refusedBy: text(refusedBy) }),
        // Of somebody else, on the account of this person.
        ...(isOther && address !== undefined && { address }),
      };
    },
    dimensions([account = '-', user = '-', key = '-', packedTags = '[]', ...rest]) {
      const renamedTags = packedTags.includes(name)
        ? JSON.stringify(tags(JSON.parse(packedTags) as readonly string[]))
        : packedTags;
      // A tag may have the name inside a longer word.
      if (account !== shown && user !== shown && renamedTags === packedTags) return undefined;
      return [account === shown ? id : account, user === shown ? id : user, key, renamedTags, ...rest];
    },
    isOf: ({ userId }) => userId === name || userId === shown,
    isBudget: isBudgetOf(name),
  };
}

/** Hash at the end of a text that {@link factText} clipped. */
const CLIPPED = /^.{200}(~[\w-]{43})$/su;

/** Returns the store key of an account by its name in records. */
export function accountKeyOf(shown: string): string {
  return CLIPPED.exec(shown)?.[1] ?? storeKey(shown);
}
