import type { Principal } from '../../../contract/index.ts';

/** Access to the passages of a folder. */
export interface AccessRule {
  readonly everybody?: boolean;
  /** Names of plans. */
  readonly plans?: readonly string[];
  /** Public ids of keys. */
  readonly keys?: readonly string[];
  readonly users?: readonly string[];
}

/** Rules by subfolder path; `.` is the folder itself. */
export type AccessRules = Readonly<Record<string, AccessRule>>;

/** Folder of files outside of any subfolder with a rule. */
const REST = '';

/** Part of the knowledge base that a caller may search. */
export interface Scope {
  /** Folders whose own rule allows the caller; subfolders with rules are listed separately. */
  readonly folders: ReadonlySet<string>;
  /** True if the current rules include a file: the index may still reflect earlier ones. */
  includes(source: string): boolean;
}

/** Access decisions; the only code that makes them. */
export interface Access {
  /** Folders with a rule of their own. */
  readonly folders: readonly string[];
  scopeOf(principal: Principal): Promise<Scope>;
}

/** `findPlan` is called only if a rule names plans; if it rejects, nothing is found. */
export function createAccess(
  rules: AccessRules,
  findPlan: (principal: Principal) => Promise<string | undefined>,
): Access {
  const known = Object.entries(pathsOf(rules));
  const needsPlan = known.some(([, { plans }]) => plans !== undefined);
  const folders = known.map(([folder]) => folder).filter((folder) => folder !== REST);
  return {
    folders,
    async scopeOf(principal) {
      const plan = needsPlan ? await findPlan(principal) : undefined;
      const visible = new Set(known.flatMap(([folder, rule]) => (allows(rule, principal, plan) ? [folder] : [])));
      return { folders: visible, includes: (source) => visible.has(folderOf(source, folders)) };
    },
  };
}

function allows(
  { everybody, plans, keys, users }: AccessRule,
  principal: Principal,
  plan: string | undefined,
): boolean {
  const { userId, keyId, limitsId } = principal;
  if (everybody || users?.includes(userId)) return true;
  if (plan !== undefined && plans?.includes(plan)) return true;
  // A key that replaced a named one has that key's `limitsId`. Lists of keys show ids after `tg_`.
  return [keyId, limitsId].some((id) => id !== undefined && (keys?.includes(id) || keys?.includes(`tg_${id}`)));
}

/** Rules by folder as named by {@link folderOf}; folders without a rule are open to all. */
function pathsOf({ '.': whole = { everybody: true }, ...rules }: AccessRules): AccessRules {
  return { [REST]: whole, ...rules };
}

/** Folder whose rule applies to a file: the innermost one with a rule. */
export function folderOf(source: string, folders: readonly string[]): string {
  const around = folders.filter((folder) => source.startsWith(`${folder}/`));
  return around.reduce((inner, folder) => (folder.length > inner.length ? folder : inner), REST);
}
