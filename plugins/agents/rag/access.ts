import type { Principal } from '../../../contract/index.ts';

/** Who may find passages of a folder. */
export interface AccessRule {
  readonly everybody?: boolean;
  /** Names of plans. */
  readonly plans?: readonly string[];
  /** Public ids of keys. */
  readonly keys?: readonly string[];
  readonly users?: readonly string[];
}

/** Rules by the path of a subfolder; `.` is the folder itself. */
export type AccessRules = Readonly<Record<string, AccessRule>>;

/** The folder of files that have no subfolder's rule. */
const REST = '';

/** The part of the knowledge base that a caller may find. */
export interface Scope {
  /** The folders whose own rule allows the caller; their subfolders with rules stand for themselves. */
  readonly folders: ReadonlySet<string>;
  /** Whether a file is in it by the rules of now: the index may still have those of a moment ago. */
  includes(source: string): boolean;
}

/** Who may find what: the only place that decides it. */
export interface Access {
  /** The folders with a rule of their own. */
  readonly folders: readonly string[];
  scopeOf(principal: Principal): Promise<Scope>;
}

/** `findPlan` is called only when a rule names plans; it may reject, and then nothing is found. */
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
  // A key that replaced a named one has the named one's `limitsId`. Lists of keys show ids behind `tg_`.
  return [keyId, limitsId].some((id) => id !== undefined && (keys?.includes(id) || keys?.includes(`tg_${id}`)));
}

/** The rules by folders as {@link folderOf} names them; what has none is everybody's. */
function pathsOf({ '.': whole = { everybody: true }, ...rules }: AccessRules): AccessRules {
  return { [REST]: whole, ...rules };
}

/** The folder whose rule counts for a file: the innermost of those that have one. */
export function folderOf(source: string, folders: readonly string[]): string {
  const around = folders.filter((folder) => source.startsWith(`${folder}/`));
  return around.reduce((inner, folder) => (folder.length > inner.length ? folder : inner), REST);
}
