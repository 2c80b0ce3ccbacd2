/**
 * Permissions for tools that vendors and MCP servers run with the operator's account, as in `serverTools` of a plan or key. A
 * permission is an ability, which includes the tools of all vendors, or the name of one tool. Tools of the gateway's MCP servers
 * have names of their own: `mcp:github/create_issue`, `mcp:github` for all of a server, `mcp:*` for all servers.
 */

/** Tools of each ability, in snake case without the suffixes of versions. */
const ABILITIES: ReadonlyMap<string, readonly string[]> = new Map([
  [
    'search',
    [
      'browser_search',
      'enterprise_web_search',
      'google_maps',
      'google_search',
      'google_search_retrieval',
      'live_search',
      'nova_grounding',
      'web_search',
      'web_search_options',
      'web_search_premium',
      'x_search',
    ],
  ],
  ['fetch', ['url_context', 'visit_website', 'web_fetch']],
  // Only tools that run at a vendor are checked: its own shell, and patches in its containers.
  ['code', ['apply_patch', 'code_execution', 'code_interpreter', 'shell']],
  ['files', ['collections_search', 'document_library', 'file_search', 'retrieval']],
  ['images', ['image_generation']],
  // Tools that send the conversation to other models.
  ['models', ['advisor', 'fusion', 'subagent']],
  ['mcp', ['connector', 'ephemeral_mcp', 'mcp', 'mcp_server', 'mcp_servers', 'mcp_toolset', 'sse']],
  ['computer', ['computer', 'computer_use']],
]);

/** Tools that cost nothing and reach nothing outside of the request: they select among the caller's own tools. */
const FREE: readonly string[] = Object.freeze(['tool_search_tool_bm25', 'tool_search_tool_regex']);

/** Suffixes that vendors add to the name of a tool: `_20250305`, `_2025_03_11`, and `_preview` before them. */
const DATE = /[-_](?:\d{8}|\d{4}[-_]\d{2}[-_]\d{2})$/;
const PREVIEW = /_preview$/;

/** Prefix of a relay's own tools. */
const PREFIX = /^\w+:/;

/** Returns whether a caller may use the tool of a name, as the vendor spells it. */
export type ToolRules = (name: string) => boolean;

/** Prefix of the tools of the gateway's MCP servers. Their names are compared as they are. */
const OF_MCP = 'mcp:';
const ALL_OF_MCP = `${OF_MCP}*`;

const compiled = new WeakMap<readonly string[], ToolRules>();
const NONE: readonly string[] = Object.freeze([]);

/** Compiles the permissions of a plan or key. A list is compiled once, so it must not change. */
export function toolRulesOf(permissions: readonly string[] = NONE): ToolRules {
  const known = compiled.get(permissions);
  if (known) return known;
  const ofMcp = new Set(permissions.filter((name) => name.startsWith(OF_MCP)));
  const names = new Set([...FREE, ...permissions.map(inSnakeCase)]);
  const tools = new Set(permissions.flatMap((name) => ABILITIES.get(name) ?? []));
  const rules: ToolRules = (name) => {
    if (name.startsWith(OF_MCP))
      return [name, name.split('/', 1)[0] ?? name, ALL_OF_MCP].some((each) => ofMcp.has(each));
    const spelled = inSnakeCase(name);
    const undated = spelled.replace(DATE, '');
    const plain = undated.replace(PREVIEW, '');
    return names.has(spelled) || names.has(undated) || names.has(plain) || tools.has(plain.replace(PREFIX, ''));
  };
  compiled.set(permissions, rules);
  return rules;
}

/** Returns the ability that includes a tool; undefined for a tool that only its own name allows. */
export function abilityOf(name: string): string | undefined {
  return [...ABILITIES.keys()].find((ability) => toolRulesOf([ability])(name));
}

/** Returns whether a permission includes another one. */
export function coversTool(permission: string, other: string): boolean {
  return permission === other || (!ABILITIES.has(other) && toolRulesOf([permission])(other));
}

function inSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
