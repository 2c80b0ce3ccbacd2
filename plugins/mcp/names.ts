import { createHash } from 'node:crypto';

/** Maximum length of a tool's name in the joined list, as several vendors of models require. */
const MAX_NAME = 64;

/** Characters of the hash in a shortened name. */
const HASH = 8;

/** Valid names of tools. Others are not offered. */
export const TOOL_NAME = /^(?!__proto__$)[\w./-]{1,128}$/;

/** Name of a server's tool in the joined list: `server__tool`. */
export function joinedName(server: string, tool: string): string {
  return toolName(`${server}__${tool}`);
}

/** Name that every vendor accepts. A longer one, or one with a dot or slash, is shortened and ends with a hash of the whole name. */
export function toolName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_');
  if (plain === name && name.length <= MAX_NAME) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH);
  return `${plain.slice(0, MAX_NAME - HASH - 1)}_${hash}`;
}

/** Server of a name in the joined list. Names of servers contain no `_`. */
export function serverOf(name: string): string {
  return name.split('__', 1)[0] ?? '';
}

/** Permission of a tool in `serverTools` of a key, plan or team. */
export function permissionOf(server: string, tool?: string): string {
  return tool === undefined ? `mcp:${server}` : `mcp:${server}/${tool}`;
}

/** Model name of a tool in the records of calls, after the provider. */
export function modelOf(server: string, tool: string): string {
  return `${server}/${tool}`;
}
